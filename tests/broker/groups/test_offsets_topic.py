from pathlib import Path

import pytest
from tests.broker.groups.conftest import FakeSync, Node

from headrace.broker.groups.offsets_topic import partition_for
from headrace.coordinators.groups.codec import decode
from headrace.coordinators.groups.records import OffsetCommit
from headrace.log.errors import StorageWriteError
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record, iter_records

COMMIT = OffsetCommit("g", "t", 0, 5, commit_timestamp_ms=1)


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        # Java: Math.abs("…".hashCode()) % 50, with Kafka's 0 for Integer.MIN_VALUE.
        ("", 0),
        ("g", 3),
        ("console-consumer-12345", 6),
        ("größe", 7),
        ("😀", 49),
        ("polygenelubricants", 0),  # its hash is Integer.MIN_VALUE
        ("the-quick-brown-fox", 30),
    ],
)
def test_a_group_has_the_partition_that_kafka_gives_it(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition


def test_the_topic_is_made_before_the_first_record_and_is_internal(node: Node) -> None:
    assert node.groups.offsets_topic.topic is None

    topic = node.run(node.groups.offsets_topic.ensure())
    log = node.groups.offsets_topic.append("g", [COMMIT])

    assert node.groups.offsets_topic.topic == topic
    assert topic.is_internal
    assert topic.partition_count == 4
    assert topic.configs["cleanup.policy"] == "compact"
    assert log.partition == partition_for("g", 4)


def test_the_records_of_one_step_are_one_batch_that_readers_hear_of(node: Node) -> None:
    node.run(node.groups.offsets_topic.ensure())
    log = node.groups.offsets_topic.append("g", [COMMIT, COMMIT._replace(partition=1)])

    (piece,) = log.read(0, 10_000)
    content = Path(log.segments[0].path).read_bytes()
    header = peek_header(content)
    assert header is not None
    assert header.size == piece.length == len(content)
    records = [decode(one.key or b"", one.value) for one in iter_records(content)]
    assert records == [COMMIT, COMMIT._replace(partition=1)]
    assert node.grown == [(log, len(content))]


def test_what_a_producer_has_staged_is_written_by_its_own_commit(node: Node) -> None:
    node.run(node.groups.offsets_topic.ensure())
    log = node.groups.offsets_topic.append("g", [COMMIT])
    batch = build_batch([Record(0, node.clock.now_ms(), b"k", b"v", [])])
    header = peek_header(batch)
    assert header is not None
    log.stage(memoryview(batch), header, node.clock.now_ms())

    node.groups.offsets_topic.append("g", [COMMIT])

    assert node.flushes == 1


def test_a_log_whose_sync_failed_takes_no_more(node: Node) -> None:
    node.run(node.groups.offsets_topic.ensure())
    sync = FakeSync()
    node.restart(sync)
    log = node.groups.offsets_topic.append("g", [COMMIT])
    node.groups.offsets_topic.on_disk(log, lambda failure: None)
    sync.fail()

    with pytest.raises(StorageWriteError):
        node.groups.offsets_topic.append("g", [COMMIT])
    failures: list[StorageWriteError | None] = []
    node.groups.offsets_topic.on_disk(log, failures.append)
    assert failures == [sync.failed[log]]


def test_what_is_on_disk_already_is_not_waited_for(node: Node) -> None:
    node.run(node.groups.offsets_topic.ensure())
    sync = FakeSync()
    node.restart(sync)
    log = node.groups.offsets_topic.append("g", [COMMIT])
    node.groups.offsets_topic.on_disk(log, lambda failure: None)
    sync.finish()

    failures: list[StorageWriteError | None] = []
    node.groups.offsets_topic.on_disk(log, failures.append)

    assert failures == [None]
    assert sync.waiting == []
