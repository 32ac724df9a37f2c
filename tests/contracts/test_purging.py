"""Purging: old messages go by age, by size or by command; topics go with all they hold."""

import os
import time

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from tests.contracts.bus import Bus, numbered, poll, values, wait_for

HOUR_MS = 3_600_000
# The smallest segment Kafka takes; purging removes whole ones.
SEGMENT = 1024 * 1024
LARGE = SEGMENT // 4


def delete_before(bus: Bus, topic: str, offset: int) -> int:
    place = TopicPartition(topic, 0, offset)
    return int(bus.done(bus.admin.delete_records([place]))[0].low_watermark)


def test_messages_older_than_the_retention_time_go_and_younger_ones_stay(bus: Bus) -> None:
    topic = bus.new_topic(retention_ms=HOUR_MS, segment_bytes=SEGMENT)
    now_ms = time.time_ns() // 1_000_000
    bus.send(topic, [os.urandom(LARGE) for _ in range(4)], timestamp=now_ms - 2 * HOUR_MS)
    bus.send(topic, numbered(3), timestamp=now_ms)

    wait_for(lambda: bus.offsets(topic)[0] > 0)

    found = bus.read(topic)
    assert values(found)[-3:] == numbered(3)
    assert [message.offset() for message in found][-3:] == [4, 5, 6]


def test_a_topic_may_lose_all_its_messages_by_age_and_keeps_counting(bus: Bus) -> None:
    topic = bus.new_topic(retention_ms=HOUR_MS)
    bus.send(topic, numbered(5), timestamp=time.time_ns() // 1_000_000 - 2 * HOUR_MS)

    wait_for(lambda: bus.offsets(topic) == (5, 5))
    (sent,) = bus.send(topic, [b"next"])

    assert sent.offset() == 5
    assert values(bus.read(topic)) == [b"next"]


def test_a_topic_above_its_size_loses_its_oldest_messages(bus: Bus) -> None:
    topic = bus.new_topic(retention_bytes=2 * SEGMENT, segment_bytes=SEGMENT)
    sent = [os.urandom(LARGE) for _ in range(16)]
    bus.send(topic, sent)

    oldest = wait_for(lambda: bus.offsets(topic)[0])

    found = values(bus.read(topic))
    assert found == sent[-len(found) :]
    # What is left is no less than was asked for, and no more than a segment above it.
    wait_for(lambda: 8 <= 16 - bus.offsets(topic)[0] <= 12)
    assert oldest <= 8


def test_without_limits_nothing_goes(bus: Bus) -> None:
    topic = bus.new_topic(retention_ms=-1)
    other = bus.new_topic(retention_ms=HOUR_MS)
    for name in (topic, other):
        bus.send(name, numbered(5), timestamp=1000)

    wait_for(lambda: bus.offsets(other) == (5, 5))

    assert values(bus.read(topic)) == numbered(5)


def test_messages_before_an_offset_are_deleted_by_command(bus: Bus, topic: str) -> None:
    bus.send(topic, numbered(10))

    assert delete_before(bus, topic, 4) == 4

    assert bus.offsets(topic) == (4, 10)
    assert values(bus.read(topic)) == numbered(10)[4:]
    assert delete_before(bus, topic, 2) == 4  # what is gone is gone


def test_all_messages_are_deleted_by_command(bus: Bus, topic: str) -> None:
    bus.send(topic, numbered(10))

    assert delete_before(bus, topic, -1) == 10

    assert bus.read(topic) == []
    assert bus.send(topic, [b"next"])[0].offset() == 10


def test_what_is_not_there_yet_is_not_deleted(bus: Bus, topic: str) -> None:
    bus.send(topic, numbered(10))

    with pytest.raises(KafkaException) as refused:
        delete_before(bus, topic, 11)

    assert refused.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_a_deleted_topic_is_gone_and_a_new_one_of_its_name_is_empty(bus: Bus, topic: str) -> None:
    bus.send(topic, numbered(10))

    bus.delete_topic(topic)
    bus.new_topic(2, name=topic)

    assert bus.partitions_of(topic) == 2
    assert bus.read(topic) == []
    assert bus.send(topic, [b"first"], partition=0)[0].offset() == 0


def test_a_reader_of_a_deleted_topic_goes_on_with_the_new_one_of_its_name(
    bus: Bus, topic: str, group: str
) -> None:
    bus.send(topic, numbered(10))
    with bus.consumer(group, topic_metadata_refresh_interval_ms=100) as member:
        member.subscribe([topic])
        poll(member, 10)

        bus.delete_topic(topic)
        bus.new_topic(name=topic)
        bus.send(topic, numbered(3, "new-"))

        assert values(poll(member, 3)) == numbered(3, "new-")


def test_a_groups_place_in_a_deleted_topic_is_forgotten(bus: Bus, topic: str, group: str) -> None:
    with bus.consumer(group) as member:
        member.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)

    bus.delete_topic(topic)
    bus.new_topic(name=topic)

    def place() -> int:
        with bus.consumer(group) as member:
            return int(member.committed([TopicPartition(topic, 0)], timeout=120)[0].offset)

    wait_for(lambda: place() < 0)
