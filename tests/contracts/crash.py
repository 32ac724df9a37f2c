"""One crash of the bus and what was there before it: restarts cost seconds, so tests share one.

Messages, positions and topics are written down; then, while a producer and a member of a group
are at work, everything is killed and started again.
"""

import threading
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.contracts.bus import PATIENCE_S, Bus, Deliveries, numbered, poll, values, wait_for

COUNT = 200
ACKS = ["0", "1", "all"]
# The bus is killed when so many have been read; the producer goes on until it is back.
KILL_AFTER = 100
_PAUSE_S = 0.005


class Before(NamedTuple):
    """What was there when the bus was killed."""

    topics: dict[str, str]  # by acks
    group: str
    topic_id: str
    acknowledged: dict[str, list[int]]  # the offsets the producer was told, by acks


class Story(NamedTuple):
    """What the clients saw that lived through the crash."""

    topic: str
    sent: list[bytes]
    acknowledged: list[bytes | None]
    offsets: list[int]
    received: list[bytes | None]
    committed: int


class Crash(NamedTuple):
    """The bus has been killed and is back."""

    before: Before
    story: Story


def crash(bus: Bus) -> Crash:
    """Kill the bus in the middle of work and start it again."""
    return Crash(_write_down(bus), _live_through(bus))


def _write_down(bus: Bus) -> Before:
    topics = {acks: bus.new_topic(3, retention_ms=777_000) for acks in ACKS}
    acknowledged = {}
    for acks, topic in topics.items():
        sent = bus.send(topic, numbered(COUNT), partition=1, config={"acks": acks})
        acknowledged[acks] = [message.offset() for message in sent]
    group = f"group-{topics['all']}"
    with bus.consumer(group) as member:
        place = TopicPartition(topics["all"], 1, 42, "a remark")
        member.commit(offsets=[place], asynchronous=False)
    topic_id = bus.topic_id(topics["all"])
    return Before(topics, group, topic_id, acknowledged)


def _live_through(bus: Bus) -> Story:
    topic = bus.new_topic()
    producer = bus.producer(enable_idempotence=True, linger_ms=0, batch_num_messages=10)
    deliveries = Deliveries()
    sent: list[bytes] = []
    is_back = threading.Event()

    def produce() -> None:
        while not is_back.is_set():
            sent.append(str(len(sent)).encode())
            producer.produce(topic, sent[-1], on_delivery=deliveries)
            producer.poll(_PAUSE_S)

    with bus.consumer(f"group-{topic}") as member:
        member.subscribe([topic])
        sending = threading.Thread(target=produce)
        sending.start()
        received = poll(member, KILL_AFTER)
        member.commit(asynchronous=False)
        try:
            bus.kill_and_restart()
        finally:
            is_back.set()
            sending.join()
        assert producer.flush(PATIENCE_S) == 0
        received += poll(member, len(sent) - KILL_AFTER)
        committed = wait_for(lambda: _commit(member))
    acknowledged = deliveries.acknowledged()
    return Story(
        topic,
        sent,
        values(acknowledged),
        [message.offset() for message in acknowledged],
        values(received),
        committed,
    )


def _commit(member: Consumer) -> int | None:
    """Where the group stands now; None while it finds itself together again."""
    try:
        (place,) = member.commit(asynchronous=False)
    except KafkaException:
        member.poll(0)
        return None
    return int(place.offset)
