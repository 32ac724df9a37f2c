"""`python -m bench.mirror`: the mirror beside a plain consumer-producer copy.

Both copy the same topics between the same brokers in one run, with the same codec and acks=all.
The plain copy keeps key, partition, timestamp and headers; it cannot be resumed and checks nothing.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import machine
from bench.errors import BenchError
from bench.report import number
from bench.topics import create_topic
from headrace.client.admin import BROKERS_DEFAULT, Admin
from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition, make_consumer, make_producer, places
from headrace.client.ranges import read_ranges
from headrace.errors import HeadraceError
from headrace.kafka.cluster import running_cluster
from headrace.kafka.jvm import BENCH_JVM
from headrace.mirror.content import content_of
from headrace.mirror.state import STATE_TOPIC
from headrace.patience import Patience
from headrace.testing import broker_process

_PLAIN = "plain-"
_CODEC = "lz4"
_PARTITIONS = 3
_VALUE_BYTES = 100
_GROUP = "bench-group"
_TARGETS = {"kafka3": 3, "kafka1": 1, "embedded": 0}  # how many nodes of Kafka
_WAIT_S = 60.0
_BATCH = 5000
_PAUSE_S = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; prints both rates, their ratio, and what the kills did."""
    parser = argparse.ArgumentParser(prog="python -m bench.mirror", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--topics", type=int, default=3)
    parser.add_argument("--to", choices=sorted(_TARGETS), default="kafka3")
    parser.add_argument("--kills", type=int, default=0, help="kill -9 a second mirror so often")
    parser.add_argument("--dir", type=Path, default=None, help="where the brokers keep their data")
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args(arguments)
    for warning in machine.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-mirror-", dir=options.dir) as name:
            figures = _run(options, Path(name))
    except HeadraceError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(json.dumps(figures))
    return 0


def _run(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    names = [f"bench-{index}" for index in range(options.topics)]
    with (
        broker_process(directory / "source") as source,
        _target(options.to, directory / "target") as target,
    ):
        print(f"filling {options.topics} topics with {options.messages:,} messages")
        _fill(source.bootstrap, names, options.messages)
        _create_topics(target, [_PLAIN + name for name in names])
        seconds = _plain_copy(source.bootstrap, target, names, options.messages)
        plain = options.messages / seconds
        print(f"plain copy: {number(plain)} messages/s ({seconds:.1f} s)")
        mirrored = _finish(source.bootstrap, target, directory / "state")
        rate = mirrored["messages"] / mirrored["seconds"]
        print(
            f"mirror:     {number(rate)} messages/s ({mirrored['seconds']:.1f} s, and "
            f"{mirrored['verify_seconds']:.1f} s to verify), {rate / plain:.2f} of the plain copy"
        )
        _check(source.bootstrap, target, names)
        figures = {
            "messages": options.messages,
            "topics": options.topics,
            "to": options.to,
            "plain_per_s": round(plain),
            "mirror_per_s": round(rate),
            "ratio": round(rate / plain, 3),
            "verify_seconds": mirrored["verify_seconds"],
        }
        if options.kills:
            figures["kills"] = _kill_and_check(
                source.bootstrap, target, names, directory / "state", options
            )
        return {**figures, "machine": machine.describe()}


def _plain_copy(source: str, target: str, names: list[str], messages: int) -> float:
    consumer = make_consumer(Bus(source), {"group.id": "plain", "enable.auto.commit": False})
    producer = make_producer(
        Bus(target),
        {
            "acks": "all",
            "linger.ms": 20,
            "compression.type": _CODEC,
            "queue.buffering.max.messages": 200_000,
        },
    )
    began_at = time.monotonic()
    consumer.assign(places(dict.fromkeys(_partitions(names), 0)))
    copied = 0
    while copied < messages:
        batch = [each for each in consumer.consume(_BATCH, 0.2) if each.error() is None]
        for message in batch:
            while True:
                try:
                    producer.produce(
                        _PLAIN + message.topic(),
                        message.value(),
                        message.key(),
                        message.partition(),
                        timestamp=message.timestamp()[1],
                        headers=message.headers(),
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
        copied += len(batch)
    producer.flush()
    seconds = time.monotonic() - began_at
    consumer.close()
    return seconds


def _start(source: str, target: str, state: Path) -> subprocess.Popen[bytes]:
    words = ["mirror", "--from", source, "--to", target, "--topics", "bench-.*", "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "headrace", *words, "--compression", _CODEC],
        stdout=subprocess.PIPE,
        env={**os.environ, "HEADRACE_STATE_DIR": str(state)},
    )


def _finish(source: str, target: str, state: Path) -> dict[str, Any]:
    with _start(source, target, state) as process:
        stdout, _ = process.communicate()
    if process.returncode:
        raise BenchError(f"the mirror ended with {process.returncode}")
    last: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return last


def _kill_and_check(
    source: str, target: str, names: list[str], state: Path, options: argparse.Namespace
) -> dict[str, Any]:
    _delete_topics(target, [*names, *(_PLAIN + name for name in names), STATE_TOPIC])
    rng = random.Random(options.seed)
    began_at = time.monotonic()
    at_kills = list[int]()
    for kill in range(options.kills):
        wanted = options.messages * (kill + rng.random()) / (options.kills + 1)
        with _start(source, target, state) as process:
            Patience(None, first_pause_s=_PAUSE_S, longest_pause_s=_PAUSE_S).until(
                lambda process=process, wanted=wanted: (  # type: ignore[misc]
                    process.poll() is not None or _arrived(target, names) >= wanted
                )
            )
            time.sleep(rng.uniform(0, 0.3))  # not always behind a look at the target
            process.send_signal(signal.SIGKILL)
        at_kills.append(_arrived(target, names))
        print(f"killed at {number(at_kills[-1])} of {number(options.messages)}")
    _finish(source, target, state)
    _check(source, target, names)
    seconds = time.monotonic() - began_at
    print(f"after {options.kills} kills: the same, and the group goes on ({seconds:.1f} s in all)")
    return {"count": options.kills, "at": at_kills, "seconds": round(seconds, 1)}


def _check(source: str, target: str, names: list[str]) -> None:
    """Every record at its offset with its content; the group's next message the same."""
    wanted, found = (_digests(bus, names) for bus in (source, target))
    if differing := [place for place in wanted if wanted[place] != found[place]]:
        raise BenchError(f"the copy differs in {differing}")
    if _next_of_group(source, names) != _next_of_group(target, names):
        raise BenchError(f"group {_GROUP} would go on at other messages")
    print(f"compared: {sum(count for count, _ in found.values()):,} records, offset by offset")


@contextmanager
def _target(kind: str, directory: Path) -> Iterator[str]:
    """Run what is copied to; yields its bootstrap string."""
    with ExitStack() as stack:
        if nodes := _TARGETS[kind]:
            cluster = stack.enter_context(
                running_cluster(directory, brokers=nodes, jvm_flags=BENCH_JVM)
            )
            yield cluster.bootstrap
        else:
            yield stack.enter_context(broker_process(directory)).bootstrap


def _create_topics(bootstrap: str, names: list[str]) -> None:
    """Topics of three partitions and the broker's own replication."""
    admin = _admin(bootstrap)
    for name in names:
        create_topic(admin, name, _PARTITIONS, BROKERS_DEFAULT)


def _delete_topics(bootstrap: str, names: list[str]) -> None:
    """And wait until they are gone."""
    admin = _admin(bootstrap)
    there = admin.metadata().topics.keys() & names
    for failure in (admin.delete_topics(there) if there else {}).values():
        if failure is not None:
            raise failure
    if not Patience(_WAIT_S).until(lambda: not admin.metadata().topics.keys() & there):
        raise BenchError(f"the target did not delete its topics within {_WAIT_S:g} s")


def _fill(bootstrap: str, names: list[str], messages: int) -> None:
    """`messages` over all topics, and a group in the middle of each partition."""
    _create_topics(bootstrap, names)
    producer = make_producer(
        Bus(bootstrap), {"linger.ms": 20, "queue.buffering.max.messages": 500_000}
    )
    for index, name in enumerate(names):
        each = messages // len(names) + (index < messages % len(names))
        producer.list_topics(
            name, timeout=_WAIT_S
        )  # it knows the partitions before it is given any
        for partition in range(_PARTITIONS):
            share = each // _PARTITIONS + (partition < each % _PARTITIONS)
            for first in range(0, share, _BATCH):
                rows = [
                    {"key": b"%d" % (at % 1000), "value": b"%0*d" % (_VALUE_BYTES, at)}
                    for at in range(first, min(first + _BATCH, share))
                ]
                while len(producer) > 400_000:
                    producer.poll(0.05)
                producer.produce_batch(name, rows, partition)
                producer.poll(0)
    if producer.flush(_WAIT_S * 5):
        raise BenchError("the source did not take the messages to copy")
    positions = {
        (name, number): messages // len(names) // _PARTITIONS // 2 + number
        for name, number in _partitions(names)
    }
    _admin(bootstrap).set_group_offsets(_GROUP, positions)


def _digests(bootstrap: str, names: list[str]) -> dict[Partition, tuple[int, str]]:
    """Of each partition the count and a digest over offset and content of every record."""
    ends = _admin(bootstrap).end_offsets(_partitions(names))
    sums = {place: hashlib.blake2b() for place in ends}
    counts = dict.fromkeys(ends, 0)
    ranges = {place: (0, end) for place, end in ends.items()}
    for batch in read_ranges(Bus(bootstrap), ranges, timeout_s=_WAIT_S):
        for message in batch:
            place = message.topic(), message.partition()
            counts[place] += 1
            pieces = b"".join(content_of(message))
            sums[place].update(b"%d:%d:" % (message.offset(), len(pieces)) + pieces)
    return {place: (counts[place], sums[place].hexdigest()) for place in ends}


def _next_of_group(bootstrap: str, names: list[str]) -> dict[Partition, tuple[int, bytes]]:
    """The message the group reads next in each partition: its offset and value."""
    committed = _admin(bootstrap).group_offsets(_GROUP)
    ranges = {place: (offset, offset + 1) for place, offset in committed.items()}
    found = dict[Partition, tuple[int, bytes]]()
    for batch in read_ranges(Bus(bootstrap), ranges, timeout_s=_WAIT_S):
        for message in batch:
            found[message.topic(), message.partition()] = message.offset(), message.value()
    if missing := set(_partitions(names)) - found.keys():
        raise BenchError(f"group {_GROUP} has nothing to read in {sorted(missing)}")
    return found


def _arrived(bootstrap: str, names: list[str]) -> int:
    """Records in the topics of this name; 0 while there are none."""
    admin = _admin(bootstrap)
    try:
        there = admin.metadata().topics
        known = [
            (name, number) for name in names if name in there for number in there[name].partitions
        ]
        return sum(admin.end_offsets(known, is_partial=True).values())
    except BusError:
        return 0


def _partitions(names: list[str]) -> list[Partition]:
    return [(name, number) for name in names for number in range(_PARTITIONS)]


def _admin(bootstrap: str) -> Admin:
    return Admin(Bus(bootstrap), timeout_s=_WAIT_S)


if __name__ == "__main__":
    sys.exit(main())
