"""Delivery: at most once, at least once, and exactly once on the way into the bus."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from tests.contracts.bus import PATIENCE_S, Bus, Deliveries, numbered, poll, values, wait_for

PROGRAM = Path(__file__).with_name("doomed_reader.py")


@pytest.fixture
def read_and_die() -> Iterator[Callable[..., list[bytes]]]:
    """Run a member in a process that is killed after it has read."""
    running: list[subprocess.Popen[str]] = []

    def run(bus: Bus, topic: str, group: str, count: int, commit: str) -> list[bytes]:
        command = [sys.executable, str(PROGRAM), bus.bootstrap, topic, group, str(count), commit]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
        return [word.encode() for word in line.split()]

    yield run
    for process in running:
        process.kill()
        process.communicate()


def test_at_least_once_a_killed_readers_messages_go_to_another(
    bus: Bus, topic: str, group: str, read_and_die: Callable[..., list[bytes]]
) -> None:
    bus.send(topic, numbered(10))
    assert read_and_die(bus, topic, group, 10, "never") == numbered(10)

    with bus.consumer(group) as other:
        other.subscribe([topic])

        assert values(poll(other, 10)) == numbered(10)


def test_at_most_once_a_killed_readers_messages_do_not_come_again(
    bus: Bus, topic: str, group: str, read_and_die: Callable[..., list[bytes]]
) -> None:
    bus.send(topic, numbered(10))
    assert read_and_die(bus, topic, group, 10, "before") == numbered(10)
    bus.send(topic, [b"next"])

    with bus.consumer(group) as other:
        other.subscribe([topic])

        assert values(poll(other, 1)) == [b"next"]


def test_exactly_once_a_message_sent_again_after_a_stall_lies_there_once(
    bus: Bus, topic: str
) -> None:
    """The producer gives up waiting and sends again; the bus has both, and must notice."""
    sent = _sent_through_a_stall(bus, topic, enable_idempotence=True)

    assert values(bus.read(topic)) == sent


def test_at_least_once_a_message_sent_again_after_a_stall_is_not_lost(bus: Bus, topic: str) -> None:
    """Without idempotence it may lie there twice: this shows that the stall leads to that."""
    sent = _sent_through_a_stall(bus, topic, enable_idempotence=False)

    found = Counter(values(bus.read(topic)))

    assert set(found) == set(sent)
    assert max(found.values()) > 1


def _sent_through_a_stall(bus: Bus, topic: str, **config: object) -> list[bytes]:
    """Send while the bus stalls, until the producer has broken off what it was asking."""
    failures: list[KafkaError] = []
    producer = bus.producer(socket_timeout_ms=500, linger_ms=0, error_cb=failures.append, **config)
    deliveries = Deliveries()
    producer.produce(topic, b"first", on_delivery=deliveries)
    assert producer.flush(PATIENCE_S) == 0
    with bus.paused():
        failures.clear()  # of a bus that was merely slow
        for value in numbered(10):
            producer.produce(topic, value, on_delivery=deliveries)
        wait_for(lambda: producer.poll(0) or failures)
    assert producer.flush(PATIENCE_S) == 0
    return [message.value() or b"" for message in deliveries.acknowledged()]
