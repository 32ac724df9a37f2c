"""`kill -9` of a mirror, ten times, and of the broker it writes to: the copy is the same.

Kills come after a number of records drawn from a seeded generator, or after a time, so that they
fall into starts, resumptions and checks too.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place
from tests.hardship.conftest import wait_until
from tests.mirror.conftest import Bus

import headrace
from headrace.kafka.node import KafkaNode
from headrace.testing import broker_process

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(1800)]

TOPICS = {"orders": 3, "payments": 2, "audit": 1}
MESSAGES = 120_000  # of each topic
KILLS = 10
GROUP = "billing"


def fill(bus: Bus) -> None:
    """Three topics and a group somewhere in the middle of each."""
    rng = random.Random(6)
    for topic, partitions in TOPICS.items():
        # Its messages are years old: Kafka removes them half a minute after it has started.
        bus.create(topic, partitions, {"retention.ms": "-1"})
        producer = bus.producer(**{"linger.ms": 20, "queue.buffering.max.messages": MESSAGES + 1})
        for number in range(MESSAGES):
            producer.produce(
                topic,
                None if number % 50 == 0 else rng.randbytes(rng.randrange(200)),
                None if number % 9 == 0 else b"key-%d" % (number % 1000),
                number % partitions,
                timestamp=1_700_000_000_000 + number,
                headers=[("n", b"%d" % number), ("n", None)] if number % 10 == 0 else None,
            )
        assert producer.flush(120) == 0
        bus.commit(GROUP, {(topic, number): 1000 + number for number in range(partitions)})


@contextmanager
def mirror_process(source: str, target: str, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "HEADRACE_STATE_DIR": str(state),
        "PYTHONPATH": str(Path(headrace.__file__).parents[1]),
    }
    words = ["mirror", "--from", source, "--to", target, "--json", "--interval", "0.5"]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def arrived(bus: Bus) -> int:
    """Records in all topics of the target; 0 while it cannot be asked."""
    consumer = Consumer({**bus.config, "group.id": "watch"})
    try:
        there = consumer.list_topics(timeout=120).topics
        return sum(
            consumer.get_watermark_offsets(Place(topic, number), timeout=120)[1]
            for topic, partitions in TOPICS.items()
            if topic in there
            for number in range(partitions)
        )
    except KafkaException:  # it has just started, and does not lead its partitions yet
        return 0
    finally:
        consumer.close()


def finish(source: Bus, target: Bus, state: Path) -> list[dict[str, Any]]:
    """Let a mirror come to its end."""
    with mirror_process(source.bootstrap, target.bootstrap, state) as process:
        stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr.decode()
    return [json.loads(line) for line in stdout.splitlines()]


def assert_same(source: Bus, target: Bus) -> None:
    for topic in TOPICS:
        assert target.records(topic) == source.records(topic)
        assert target.committed(GROUP, topic) == source.committed(GROUP, topic)


def kill_when(process: subprocess.Popen[bytes], is_time: Callable[[], bool]) -> bool:
    """Whether it was still running when its time came."""
    wait_until(lambda: process.poll() is not None or is_time(), "a moment to kill", 300)
    is_running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert is_running or process.returncode == 0, process.stderr and process.stderr.read()
    return is_running


def test_a_mirror_killed_ten_times_copies_everything_once(tmp_path: Path) -> None:
    rng = random.Random(2026)
    total = MESSAGES * len(TOPICS)
    with broker_process(tmp_path / "source") as broker, KafkaNode(tmp_path / "kafka") as node:
        source, target = Bus(broker.bootstrap), Bus(node.bootstrap)
        fill(source)
        at_kills = list[int]()
        for number in range(KILLS):
            with mirror_process(source.bootstrap, target.bootstrap, tmp_path / "state") as process:
                if number % 3 == 2:
                    deadline = time.monotonic() + rng.uniform(0.8, 4)
                    kill_when(process, lambda at=deadline: time.monotonic() > at)  # type: ignore[misc]
                else:
                    wanted = round(total * (number + rng.random()) / (KILLS + 1))
                    kill_when(process, lambda at=wanted: arrived(target) >= at)  # type: ignore[misc]
            at_kills.append(arrived(target))

        lines = finish(source, target, tmp_path / "state")

        print(f"\nrecords at the target after each kill: {at_kills}")
        assert_same(source, target)
        verified = {line["topic"]: line["verified"] for line in lines if "verified" in line}
        assert verified == dict.fromkeys(TOPICS, "checksums")


def test_a_target_killed_on_the_way_makes_no_difference(tmp_path: Path) -> None:
    total = MESSAGES * len(TOPICS)
    node = KafkaNode(tmp_path / "kafka")
    with broker_process(tmp_path / "source") as broker, node:
        source, target = Bus(broker.bootstrap), Bus(node.bootstrap)
        fill(source)
        with mirror_process(source.bootstrap, target.bootstrap, tmp_path / "state") as process:
            wait_until(lambda: arrived(target) > total // 4, "a quarter of the copy", 300)
            node.kill()
            node.start()
            wait_until(lambda: arrived(target) > total // 2, "half of the copy", 300)
            node.kill()
            node.start()
            _, stderr = process.communicate(timeout=600)

        assert process.returncode == 0, stderr.decode()
        assert_same(source, target)
        finish(source, target, tmp_path / "state")


def test_a_source_killed_on_the_way_makes_no_difference(tmp_path: Path) -> None:
    total = MESSAGES * len(TOPICS)
    with broker_process(tmp_path / "target") as second:
        target = Bus(second.bootstrap)
        with broker_process(tmp_path / "source") as broker:
            source, port = Bus(broker.bootstrap), broker.port
            fill(source)
            with mirror_process(source.bootstrap, target.bootstrap, tmp_path / "state") as process:
                wait_until(lambda: arrived(target) > total // 4, "a quarter of the copy", 300)
                broker.kill()
                with broker_process(tmp_path / "source", port=port) as again:
                    assert again.port == port
                    _, stderr = process.communicate(timeout=600)

                    assert process.returncode == 0, stderr.decode()
                    assert_same(source, target)
