"""`python -m bench.mirror`: the mirror beside a plain consumer-producer copy.

Both copy the same topics between the same brokers in one run, with the same codec and acks=all.
The plain copy keeps key, partition, timestamp and headers; it cannot be resumed and checks nothing.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine, mirror_target
from bench.errors import BenchError
from bench.report import number
from headrace.errors import HeadraceError
from headrace.mirror.state import STATE_TOPIC
from headrace.testing import broker_process

_PLAIN = "plain-"
_CODEC = "lz4"
_BATCH = 5000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; prints both rates, their ratio, and what the kills did."""
    parser = argparse.ArgumentParser(prog="python -m bench.mirror", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--topics", type=int, default=3)
    parser.add_argument("--to", choices=sorted(mirror_target.TARGETS), default="kafka3")
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
        mirror_target.target(options.to, directory / "target") as target,
    ):
        print(f"filling {options.topics} topics with {options.messages:,} messages")
        mirror_target.fill(source.bootstrap, names, options.messages)
        mirror_target.create_topics(target, [_PLAIN + name for name in names])
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
    from confluent_kafka import Consumer, Producer, TopicPartition

    quiet: dict[str, Any] = {"log_level": 0}
    consumer: Any = Consumer(
        {**quiet, "bootstrap.servers": source, "group.id": "plain", "enable.auto.commit": False}
    )
    producer: Any = Producer(
        {
            **quiet,
            "bootstrap.servers": target,
            "acks": "all",
            "linger.ms": 20,
            "compression.type": _CODEC,
            "queue.buffering.max.messages": 200_000,
        }
    )
    began_at = time.monotonic()
    consumer.assign(
        [
            TopicPartition(name, partition, 0)
            for name in names
            for partition in range(mirror_target.PARTITIONS)
        ]
    )
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
    mirror_target.delete_topics(target, [*names, *(_PLAIN + name for name in names), STATE_TOPIC])
    rng = random.Random(options.seed)
    began_at = time.monotonic()
    at_kills = list[int]()
    for kill in range(options.kills):
        wanted = options.messages * (kill + rng.random()) / (options.kills + 1)
        with _start(source, target, state) as process:
            while process.poll() is None and mirror_target.arrived(target, names) < wanted:
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 0.3))  # not always behind a look at the target
            process.send_signal(signal.SIGKILL)
        at_kills.append(mirror_target.arrived(target, names))
        print(f"killed at {number(at_kills[-1])} of {number(options.messages)}")
    _finish(source, target, state)
    _check(source, target, names)
    seconds = time.monotonic() - began_at
    print(f"after {options.kills} kills: the same, and the group goes on ({seconds:.1f} s in all)")
    return {"count": options.kills, "at": at_kills, "seconds": round(seconds, 1)}


def _check(source: str, target: str, names: list[str]) -> None:
    """Every record at its offset with its content; the group's next message the same."""
    wanted, found = (mirror_target.digests(bus, names) for bus in (source, target))
    if differing := [place for place in wanted if wanted[place] != found[place]]:
        raise BenchError(f"the copy differs in {differing}")
    if mirror_target.next_of_group(source, names) != mirror_target.next_of_group(target, names):
        raise BenchError(f"group {mirror_target.GROUP} would go on at other messages")
    print(f"compared: {sum(count for count, _ in found.values()):,} records, offset by offset")


if __name__ == "__main__":
    sys.exit(main())
