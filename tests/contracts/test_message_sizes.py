"""Message sizes: a quarter of a megabyte is ordinary, and the topic's limit is exact."""

import os

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from tests.contracts.bus import Bus, poll, values

LARGE = 256 * 1024
# A client's own limit must not hide the topic's.
UNLIMITED = {"message_max_bytes": 10_000_000}
TOPIC_LIMIT = 20_000
# What a batch of one message adds to a value of 8 to 1,000 KB, without key and headers: 61 bytes
# of batch; of record the lengths of itself and of its value, 3 bytes each, and 5 more fields.
BATCH_OF_ONE = 61 + 3 + 3 + 5


def refusal(bus: Bus, topic: str, value: bytes, **config: object) -> int | None:
    """The error's number, None where the message was taken."""
    try:
        bus.send(topic, [value], config={**UNLIMITED, **config})
    except KafkaException as error:
        return int(error.args[0].code())
    return None


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_messages_of_256_kilobytes_go_through(bus: Bus, topic: str, codec: str) -> None:
    sent = [os.urandom(LARGE) for _ in range(8)]

    bus.send(topic, sent, config={"compression_type": codec})

    assert values(bus.read(topic)) == sent


def test_a_message_larger_than_a_fetch_still_comes(bus: Bus, topic: str) -> None:
    sent = [os.urandom(LARGE) for _ in range(2)]
    bus.send(topic, sent)

    limits = {"fetch_message_max_bytes": 1000, "fetch_max_bytes": 1000, "message_max_bytes": 1000}
    with bus.consumer(**limits) as reader:
        reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        got = poll(reader, 2)

    assert values(got) == sent


def test_the_largest_message_a_topic_takes_is_exact_to_the_byte(bus: Bus) -> None:
    topic = bus.new_topic(max_message_bytes=TOPIC_LIMIT)
    largest = TOPIC_LIMIT - BATCH_OF_ONE

    assert refusal(bus, topic, b"x" * largest) is None
    assert refusal(bus, topic, b"x" * (largest + 1)) == KafkaError.MSG_SIZE_TOO_LARGE

    assert values(bus.read(topic)) == [b"x" * largest]


def test_the_limit_counts_what_is_left_after_compression(bus: Bus) -> None:
    topic = bus.new_topic(max_message_bytes=TOPIC_LIMIT)

    assert refusal(bus, topic, b"x" * 100_000) == KafkaError.MSG_SIZE_TOO_LARGE
    assert refusal(bus, topic, b"x" * 100_000, compression_type="gzip") is None


def test_a_message_that_is_refused_harms_no_other(bus: Bus) -> None:
    topic = bus.new_topic(max_message_bytes=TOPIC_LIMIT)
    bus.send(topic, [b"before"])

    assert refusal(bus, topic, b"x" * 100_000) == KafkaError.MSG_SIZE_TOO_LARGE
    bus.send(topic, [b"after"])

    assert values(bus.read(topic)) == [b"before", b"after"]
