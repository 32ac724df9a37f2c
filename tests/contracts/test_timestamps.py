"""Timestamps: the producer's time by default, the bus's own where the topic says so."""

import time

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
)
from tests.contracts.bus import Bus

LONG_AGO_MS = 1_500_000_000_000
HOUR_MS = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_message_keeps_the_time_its_producer_gave_it(bus: Bus) -> None:
    topic = bus.new_topic(retention_ms=-1)

    for timestamp in (LONG_AGO_MS, 1, LONG_AGO_MS + 5):
        bus.send(topic, [b"v"], timestamp=timestamp)

    assert [message.timestamp() for message in bus.read(topic)] == [
        (TIMESTAMP_CREATE_TIME, LONG_AGO_MS),
        (TIMESTAMP_CREATE_TIME, 1),
        (TIMESTAMP_CREATE_TIME, LONG_AGO_MS + 5),
    ]


def test_a_topic_may_stamp_messages_when_they_are_appended(bus: Bus) -> None:
    topic = bus.new_topic(message_timestamp_type="LogAppendTime")

    before = now_ms()
    bus.send(topic, [b"v"], timestamp=LONG_AGO_MS)
    after = now_ms()

    (message,) = bus.read(topic)
    kind, timestamp = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before <= timestamp <= after


def test_a_producer_is_told_the_time_the_bus_gave(bus: Bus) -> None:
    topic = bus.new_topic(message_timestamp_type="LogAppendTime")

    (sent,) = bus.send(topic, [b"v"], timestamp=LONG_AGO_MS)

    assert sent.timestamp() == bus.read(topic)[0].timestamp()


@pytest.mark.parametrize(
    ("limit", "timestamp"),
    [
        ({"message_timestamp_after_max_ms": HOUR_MS}, 2 * HOUR_MS),
        ({"message_timestamp_before_max_ms": HOUR_MS}, -2 * HOUR_MS),
    ],
    ids=["ahead", "behind"],
)
def test_a_time_too_far_from_now_is_refused(
    bus: Bus, limit: dict[str, int], timestamp: int
) -> None:
    topic = bus.new_topic(**limit)

    with pytest.raises(KafkaException) as refusal:
        bus.send(topic, [b"v"], timestamp=now_ms() + timestamp)

    assert refusal.value.args[0].code() == KafkaError.INVALID_TIMESTAMP
    assert bus.read(topic) == []


def test_a_time_two_hours_ahead_is_refused_by_default(bus: Bus, topic: str) -> None:
    with pytest.raises(KafkaException) as refusal:
        bus.send(topic, [b"v"], timestamp=now_ms() + 2 * HOUR_MS)

    assert refusal.value.args[0].code() == KafkaError.INVALID_TIMESTAMP
