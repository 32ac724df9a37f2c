"""Kafka's files in both directions: headrace takes over a directory of Kafka 4.3.1's, and what
it writes itself is byte for byte what Kafka wrote."""

import json
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from tests.interop.wire import EARLIEST, LATEST, METADATA, WireClient, batch_of

from headrace.log.producer_snapshot import decode_snapshot, encode_snapshot
from headrace.records.batch import peek_header
from headrace.testing import RunningBroker, running_broker

CAPTURES = Path(__file__).parents[1] / "data" / "kafka-4.3.1"
SMALL = {"segment_index_bytes": 80, "index_interval_bytes": 512, "retention_ms": -1}
REPLAYED = {
    **dict.fromkeys(("codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd"), SMALL),
    "idem": {"index_interval_bytes": 512, "retention_ms": -1},
    "multi": {"retention_ms": -1},
    "empty": {"retention_ms": -1},
}


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """headrace on a copy of a directory that a real Kafka left behind."""
    directory = tmp_path_factory.mktemp("adopted") / "data"
    shutil.copytree(CAPTURES / "data", directory)
    with running_broker(directory) as broker:
        yield broker


def expected_messages() -> list[dict[str, Any]]:
    lines = (CAPTURES / "expected.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_message_kafka_wrote_is_served(adopted: RunningBroker) -> None:
    expected = expected_messages()
    partitions = {(message["topic"], message["partition"]) for message in expected}

    received = read_all(adopted.bootstrap, partitions, len(expected))

    for message in expected:
        del message["committed"]
    order = ("topic", "partition", "offset")
    assert sorted(received, key=lambda m: [m[name] for name in order]) == sorted(
        expected, key=lambda m: [m[name] for name in order]
    )


def read_all(bootstrap: str, partitions: set[tuple[str, int]], count: int) -> list[dict[str, Any]]:
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        consumer.assign(
            [ck.TopicPartition(topic, number, ck.OFFSET_BEGINNING) for topic, number in partitions]
        )
        received: list[dict[str, Any]] = []
        while len(received) < count and (polled := consumer.consume(count - len(received), 20)):
            received += map(described, polled)
        return received
    finally:
        consumer.close()


def described(message: ck.Message) -> dict[str, Any]:
    """A message as expected.jsonl has it."""
    assert message.error() is None, message.error()

    def text(content: bytes | None) -> str | None:
        return None if content is None else content.decode()

    kinds = {ck.TIMESTAMP_CREATE_TIME: "CreateTime", ck.TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime"}
    kind, timestamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp,
        "timestamp_type": kinds[kind],
        "key": text(message.key()),
        "value": text(message.value()),
        "headers": [[name, text(value)] for name, value in message.headers() or []],
    }


@pytest.mark.parametrize(
    ("topic", "start", "end"),
    [
        ("codec-zstd", 0, 200),
        ("java-codecs", 0, 100),
        ("trimmed", 35, 100),
        ("txn", 0, 136),
        ("compacted", 0, 200),
        ("empty", 0, 0),
    ],
)
def test_the_ends_of_the_logs_are_kafkas(
    adopted: RunningBroker, topic: str, start: int, end: int
) -> None:
    with WireClient(adopted.bootstrap) as wire:
        found = [wire.list_offset(topic, which).offset for which in (EARLIEST, LATEST)]

    assert found == [start, end]


def test_the_cluster_and_its_topics_keep_their_ids(adopted: RunningBroker) -> None:
    properties = (CAPTURES / "data" / "meta.properties").read_text().splitlines()
    cluster_id = next(line for line in properties if line.startswith("cluster.id=")).split("=")[1]

    with WireClient(adopted.bootstrap) as wire:
        answer = wire.call(METADATA, 2, topics=None)
        topic_id = wire.topic_id("multi")

    assert answer.cluster_id == cluster_id
    assert (
        f"topic_id: {_base64(topic_id.bytes)}"
        in (CAPTURES / "data" / "multi-0" / "partition.metadata").read_text()
    )
    partition_counts = {topic.name: len(topic.partitions) for topic in answer.topics}
    assert partition_counts["multi"] == 3
    assert "__cluster_metadata" not in partition_counts


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def test_writing_goes_on_where_kafka_stopped(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / "data", tmp_path / "data")

    with running_broker(tmp_path / "data") as broker, WireClient(broker.bootstrap) as wire:
        appended = wire.produce("multi", batch_of(3), partition=2)
        after_transactions = wire.produce("txn", batch_of(1))

    assert (appended.error_code, appended.base_offset) == (0, 15)
    assert (after_transactions.error_code, after_transactions.base_offset) == (0, 136)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every batch in Kafka's files, sent to headrace as its producer sent it to Kafka."""
    directory = tmp_path_factory.mktemp("replayed")
    with running_broker(directory) as broker, WireClient(broker.bootstrap) as wire:
        for topic, configs in REPLAYED.items():
            partitions = sorted((CAPTURES / "data").glob(f"{topic}-[0-9]"))
            assert wire.create_topic(topic, len(partitions), **configs).error_code == 0
            for number, partition in enumerate(partitions):
                # headrace makes a partition's files when it is first asked for.
                wire.list_offset(topic, EARLIEST, partition=number)
                for batch in batches_in(partition):
                    answer = wire.produce(topic, batch, partition=number)
                    assert answer.error_code == 0, answer.error_message
    return directory


def batches_in(partition: Path) -> Iterator[bytes]:
    for path in sorted(partition.glob("*.log")):
        content = path.read_bytes()
        position = 0
        while head := peek_header(content, position):
            yield content[position : position + head.size]
            position += head.size


@pytest.mark.parametrize("topic", REPLAYED)
def test_files_are_byte_for_byte_what_kafka_wrote(replayed: Path, topic: str) -> None:
    kafka = files_of(CAPTURES / "data", topic)

    headrace = files_of(replayed, topic)

    assert headrace.keys() == kafka.keys()
    for name, content in kafka.items():
        assert headrace[name] == content, name


def files_of(directory: Path, topic: str) -> dict[str, bytes]:
    """All files of a topic by name; its id is each cluster's own."""
    return {
        f"{path.parent.name}/{path.name}": _without_times(path)
        for path in directory.glob(f"{topic}-[0-9]/*")
        if path.name != "partition.metadata"
    }


def _without_times(path: Path) -> bytes:
    """A snapshot's times are Kafka's record timestamps and headrace's times of the append."""
    content = path.read_bytes()
    if path.suffix != ".snapshot":
        return content
    entries = decode_snapshot(content)
    assert encode_snapshot(entries) == content
    return encode_snapshot({pid: e._replace(last_append_ms=0) for pid, e in entries.items()})
