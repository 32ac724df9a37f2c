"""Compaction: a topic may keep the last message of each key, and only that."""

import os
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Message
from tests.contracts.bus import Bus, wait_for

SEGMENT = 1024 * 1024
EAGER = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": 0.01,
    "segment_bytes": SEGMENT,
    "delete_retention_ms": 0,
}


@pytest.mark.differs("compaction")
def test_the_last_message_of_each_key_is_kept_and_those_before_it_go(bus: Bus) -> None:
    topic = bus.new_topic(1, **EAGER)
    for number in range(3):
        for key in ("a", "b"):
            bus.send(topic, [f"{key}{number}"], key=key)
    # The segment that is written to is never compacted: begin a new one.
    bus.send(topic, [os.urandom(SEGMENT // 3) for _ in range(4)], key=b"filler")

    wait_for(lambda: bus.read(topic)[0].offset() > 0, bus.patience_s)

    kept = {message.key(): message.value() for message in bus.read(topic)}
    assert (kept[b"a"], kept[b"b"]) == (b"a2", b"b2")
    assert [message.offset() for message in bus.read(topic)][:2] == [4, 5]


def test_a_message_without_a_key_is_refused(bus: Bus) -> None:
    topic = bus.new_topic(1, **EAGER)

    with pytest.raises(KafkaException) as refused:
        bus.send(topic, [b"v"])

    assert refused.value.args[0].code() == KafkaError.INVALID_RECORD


def test_of_a_batch_only_the_messages_without_a_key_are_to_blame(bus: Bus) -> None:
    topic = bus.new_topic(1, **EAGER)
    # All in one batch, on a busy machine too: the topic is known before, and only a flush sends.
    producer = bus.producer(linger_ms=60_000)
    producer.list_topics(topic, bus.patience_s)
    outcomes: dict[int, int] = {}

    def note(number: int) -> Callable[[KafkaError | None, Message], None]:
        return lambda error, message: outcomes.update({number: error.code() if error else 0})

    for number in range(100):
        key = None if number % 10 == 3 else b"k"
        producer.produce(topic, b"v", key=key, on_delivery=note(number))
    assert producer.flush(bus.patience_s) == 0

    blamed = {number for number in outcomes if outcomes[number] == KafkaError.INVALID_RECORD}
    others = {code for number, code in outcomes.items() if number not in blamed}
    assert blamed == set(range(3, 100, 10))
    assert others == {KafkaError._INVALID_DIFFERENT_RECORD}
