"""Batching: how a producer packs its messages changes nothing about them."""

import json

import pytest
from confluent_kafka import TopicPartition
from kio.schema.describe_log_dirs.v4.request import DescribableLogDirTopic, DescribeLogDirsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i32
from tests.contracts.bus import Bus, numbered, poll, values

from headrace.client.addresses import parse_addresses
from headrace.client.wire import WireConnection

COUNT = 100
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
# One message a batch; small ones; all in one.
PACKINGS: list[dict[str, object]] = [
    {"linger_ms": 0, "batch_num_messages": 1},
    {"linger_ms": 5, "batch_size": 1000},
    {"linger_ms": 50, "batch_size": 1_000_000},
]


@pytest.mark.parametrize("codec", CODECS)
def test_every_message_comes_once_and_in_order(bus: Bus, codec: str) -> None:
    topic = bus.new_topic(len(PACKINGS))
    sent = [json.dumps({"number": number, "text": "x" * 20}).encode() for number in range(COUNT)]

    for partition, packing in enumerate(PACKINGS):
        config = {"compression_type": codec, **packing}
        acknowledged = bus.send(topic, sent, partition=partition, config=config)
        assert [message.offset() for message in acknowledged] == list(range(COUNT))

    for partition in range(len(PACKINGS)):
        assert values(bus.read(topic, partition)) == sent


def test_codecs_may_change_from_batch_to_batch(bus: Bus, topic: str) -> None:
    for codec in CODECS * 2:
        bus.send(topic, numbered(10, codec), config={"compression_type": codec})

    assert values(bus.read(topic)) == [
        value for codec in CODECS * 2 for value in numbered(10, codec)
    ]


def test_a_reader_may_start_inside_a_compressed_batch(bus: Bus, topic: str) -> None:
    bus.send(topic, numbered(100), config={"compression_type": "lz4", "linger_ms": 100})

    with bus.consumer() as reader:
        reader.assign([TopicPartition(topic, 0, 42)])

        assert values(poll(reader, 58)) == numbered(100)[42:]


def bytes_on_disk(bus: Bus, topic: str) -> int:
    """The size of one copy of a topic; every broker of a cluster has one."""
    wish = DescribableLogDirTopic(topic=TopicName(topic), partitions=(i32(0),))
    with WireConnection(parse_addresses(bus.bootstrap)[0]) as connection:
        answer = connection.ask(DescribeLogDirsRequest(topics=(wish,)))
    return sum(
        each.partition_size
        for directory in answer.results
        for found in directory.topics
        for each in found.partitions
    )


@pytest.mark.differs("compression by the topic")
def test_a_topic_may_compress_what_comes_plain(bus: Bus) -> None:
    topic = bus.new_topic(compression_type="gzip")
    sent = [b"x" * 10_000 for _ in range(10)]

    bus.send(topic, sent)

    assert values(bus.read(topic)) == sent
    assert bytes_on_disk(bus, topic) < 10_000
