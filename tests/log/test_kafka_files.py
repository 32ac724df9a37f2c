"""Kafka's own files, both ways: we read what 4.3.1 wrote, and write what it would write."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

from headrace.config import LogConfig
from headrace.log import checkpoints
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_snapshot import decode_snapshot, encode_snapshot
from headrace.log.verify import verify_directory
from headrace.model import TopicPartition
from headrace.records.batch import peek_header
from headrace.records.record import Record, iter_records

FOREVER_MS = 10**15
SMALL = LogConfig(segment_index_bytes=80, index_interval_bytes=512, retention_ms=None)
DENSE = LogConfig(index_interval_bytes=512, retention_ms=None)
# Its README does not say the interval; an entry for a batch behind one of 504 bytes does.
COMPACTED = LogConfig(index_interval_bytes=256, retention_ms=None, is_compacted=True)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def config_for(topic: str) -> LogConfig:
    if topic.startswith(("codec-", "trimmed")) or topic == "txn":
        return SMALL
    if topic == "compacted":
        return COMPACTED
    return DENSE if topic == "idem" else LogConfig(retention_ms=None)


def open_directory(path: Path) -> LogDirectory:
    directory = LogDirectory(path, node_id=1, expire_producers_ms=FOREVER_MS)
    directory.open(0, config_for=config_for)
    return directory


def read_records(log: PartitionLog) -> list[Record]:
    """Every visible record but markers, as a consumer would get them."""
    records: list[Record] = []
    offset = log.log_start_offset
    while slices := log.read(offset, 1000):
        data = os.pread(slices[0].file.fd, slices[0].length, slices[0].position)
        at = 0
        while at < len(data):
            header = peek_header(data, at)
            assert header is not None
            if not header.is_control:
                records += iter_records(data[at : at + header.size])
            at += header.size
            offset = header.next_offset
    return [record for record in records if record.offset >= log.log_start_offset]


def expected_messages(kafka_data: Path) -> dict[TopicPartition, list[tuple[object, ...]]]:
    expected: dict[TopicPartition, list[tuple[object, ...]]] = defaultdict(list)
    for line in (kafka_data.parent / "expected.jsonl").read_text().splitlines():
        message = json.loads(line)
        name = TopicPartition(message["topic"], message["partition"])
        expected[name].append((message["offset"], message["timestamp"]))
    return expected


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_adopted_directory_serves_every_message(
    adopted: Path, kafka_data: Path, is_clean: bool
) -> None:
    if not is_clean:
        (adopted / checkpoints.CLEAN_SHUTDOWN).unlink()
    directory = open_directory(adopted)

    found = {}
    for name, topic_id in directory.partitions_on_disk().items():
        log = directory.get(*name, topic_id, config_for(name.topic))
        if not name.topic.startswith("__"):
            found[name] = [(r.offset, r.timestamp) for r in read_records(log)]
    directory.close(0)

    empty = TopicPartition("empty", 0)
    assert found == {**expected_messages(kafka_data), empty: []}


@pytest.mark.parametrize("is_clean", [True, False])
def test_opening_and_closing_kafkas_directory_changes_no_file(
    adopted: Path, kafka_data: Path, is_clean: bool
) -> None:
    if not is_clean:
        (adopted / checkpoints.CLEAN_SHUTDOWN).unlink()
    directory = open_directory(adopted)
    for name, topic_id in directory.partitions_on_disk().items():
        directory.get(*name, topic_id, config_for(name.topic))
    directory.close(0)

    # The order of lines in a checkpoint is a Java hash map's, and the epoch is Kafka's own.
    free = {checkpoints.HIGH_WATERMARKS, checkpoints.RECOVERY_POINTS, checkpoints.CLEAN_SHUTDOWN}
    for source in kafka_data.rglob("*"):
        if source.is_file() and source.name not in free:
            copy = adopted / source.relative_to(kafka_data)
            assert copy.read_bytes() == source.read_bytes(), source


@pytest.mark.parametrize("name", [checkpoints.HIGH_WATERMARKS, checkpoints.RECOVERY_POINTS])
def test_checkpoints_hold_what_kafkas_held(adopted: Path, kafka_data: Path, name: str) -> None:
    directory = open_directory(adopted)
    for partition, topic_id in directory.partitions_on_disk().items():
        directory.get(*partition, topic_id, config_for(partition.topic))
    directory.close(0)

    assert checkpoints.read_offsets(adopted / name) == checkpoints.read_offsets(kafka_data / name)


def test_indexes_rebuilt_from_the_log_are_kafkas(adopted: Path, kafka_data: Path) -> None:
    (adopted / checkpoints.CLEAN_SHUTDOWN).unlink()
    (adopted / checkpoints.RECOVERY_POINTS).unlink()
    for index in adopted.glob("*/*index"):
        if not index.name.endswith(".txnindex"):
            index.write_bytes(b"garbage")

    directory = open_directory(adopted)
    directory.close(0)

    for source in kafka_data.glob("*/*index"):
        if not source.parent.name.startswith("__cluster_metadata"):
            copy = adopted / source.relative_to(kafka_data)
            assert copy.read_bytes() == source.read_bytes(), source


def test_producer_state_rebuilt_from_the_log_is_kafkas(adopted: Path, kafka_data: Path) -> None:
    (adopted / checkpoints.CLEAN_SHUTDOWN).unlink()
    (adopted / checkpoints.RECOVERY_POINTS).unlink()
    for snapshot in adopted.glob("*/*.snapshot"):
        snapshot.unlink()

    directory = open_directory(adopted)
    directory.close(0)

    for source in kafka_data.glob("*/*.snapshot"):
        topic = source.parent.name
        # Compaction took the batches that earlier snapshots of these speak of.
        if not topic.startswith("__"):
            copy = adopted / source.relative_to(kafka_data)
            assert without_times(copy) == without_times(source), source


def without_times(snapshot: Path) -> bytes:
    """A snapshot but for when each producer was last heard of: the log does not say that."""
    entries = decode_snapshot(snapshot.read_bytes())
    return encode_snapshot({pid: e._replace(last_append_ms=0) for pid, e in entries.items()})


def test_snapshots_decode_and_encode_to_the_same_bytes(kafka_data: Path) -> None:
    snapshots = [path.read_bytes() for path in kafka_data.glob("*/*.snapshot")]

    assert len(snapshots) > 20
    assert [encode_snapshot(decode_snapshot(data)) for data in snapshots] == snapshots


@pytest.mark.parametrize("topic", [*(f"codec-{codec}" for codec in CODECS), "idem", "txn"])
def test_appending_kafkas_batches_writes_kafkas_files(
    kafka_data: Path, tmp_path: Path, topic: str
) -> None:
    source = kafka_data / f"{topic}-0"
    directory = LogDirectory(tmp_path, node_id=1, expire_producers_ms=FOREVER_MS)
    directory.open(0)
    topic_id = checkpoints.read_partition_metadata(source)
    assert topic_id is not None
    log = directory.create(topic, 0, topic_id, config_for(topic), 0)
    now_ms = 1_794_793_500_000

    for path in sorted(source.glob("*.log")):
        data = bytearray(path.read_bytes())
        at = 0
        while at < len(data):
            header = peek_header(data, at)
            assert header is not None
            if header.is_control:
                # Markers come from the transaction coordinator, past the sequence checks.
                header = header._replace(producer_id=-1)
            # Kafka's snapshots have the batch's time where ours have the time of the append.
            log.stage(memoryview(data)[at : at + header.size], header, header.max_timestamp)
            log.commit(now_ms)
            at += header.size
    directory.close(now_ms)

    # Without a coordinator no transaction is known to end: snapshots and abort lists differ.
    suffixes = ["*.log", "*.index", "*.timeindex"] + ([] if topic == "txn" else ["*.snapshot"])
    for suffix in suffixes:
        wanted = {path.name: path.read_bytes() for path in source.glob(suffix)}
        written = {path.name: path.read_bytes() for path in log.directory.glob(suffix)}
        assert written == wanted, suffix
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        assert (log.directory / name).read_bytes() == (source / name).read_bytes()


def test_trimmed_records_are_not_served(adopted: Path) -> None:
    directory = open_directory(adopted)
    topic_id = directory.partitions_on_disk()[TopicPartition("trimmed", 0)]
    log = directory.get("trimmed", 0, topic_id, SMALL)

    assert (log.log_start_offset, log.log_end_offset) == (35, 100)
    assert log.end_offset_for_epoch(0) == (0, 100)
    directory.close(0)


def test_meta_properties_and_ids_are_read(adopted: Path) -> None:
    directory = open_directory(adopted)

    assert directory.cluster_id == "n1yZGgkBQ-eCnX_PAjguNQ"
    assert directory.was_clean
    assert checkpoints.encode_id(checkpoints.decode_id("Zptp6P_VQSm5uOWhk77AhA")) == (
        "Zptp6P_VQSm5uOWhk77AhA"
    )
    directory.close(0)


def test_kafkas_metadata_log_is_not_taken_for_a_partition(adopted: Path) -> None:
    directory = open_directory(adopted)

    topics = {name.topic for name in directory.partitions_on_disk()}

    assert "__cluster_metadata" not in topics
    assert {"__consumer_offsets", "__transaction_state", "codec-none"} <= topics
    directory.close(0)


def test_verify_finds_nothing_in_kafkas_healthy_files(kafka_data: Path) -> None:
    findings = [
        finding
        for finding in verify_directory(kafka_data)
        # A snapshot-based metadata log has control batches of its own; not ours to judge.
        if "__cluster_metadata" not in str(finding.path)
    ]

    assert findings == []
