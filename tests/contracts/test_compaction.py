"""Compaction: a topic may keep the last message of each key, and only that."""

import os

import pytest
from confluent_kafka import KafkaError, KafkaException
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
