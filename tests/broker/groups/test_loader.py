import logging

import pytest
from tests.at_once import at_once
from tests.broker.groups.conftest import Node

from headrace.broker.groups.loader import read_live_records
from headrace.coordinators.groups.codec import encode
from headrace.coordinators.groups.records import GroupMetadata, OffsetCommit, Tombstone
from headrace.log.partition_log import PartitionLog
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record

COMMIT = OffsetCommit("g", "t", 0, 5, commit_timestamp_ms=1)
ABORT_MARKER, COMMIT_MARKER = (b"\0\0\0\0", b"\0\0\0\0\0\0"), (b"\0\0\0\1", b"\0\0\0\0\0\0")


def append(
    node: Node, log: PartitionLog, *pairs: tuple[bytes, bytes | None], **how: object
) -> None:
    now_ms = node.clock.now_ms()
    records = [Record(at, now_ms, *pair, []) for at, pair in enumerate(pairs)]
    batch = build_batch(records, **how)  # type: ignore[arg-type]
    header = peek_header(batch)
    assert header is not None
    if header.is_control:
        # Markers come from the transaction coordinator, past the sequence checks.
        header = header._replace(producer_id=-1)
    log.stage(memoryview(batch), header, now_ms)
    log.commit(now_ms)


def a_log(node: Node) -> PartitionLog:
    return node.topics.log(at_once(node.groups.offsets_topic.ensure()).name, 0)


def test_every_key_has_its_last_value_and_tombstones_are_gone(node: Node) -> None:
    log = a_log(node)
    for record in (
        COMMIT,
        COMMIT._replace(partition=1),
        COMMIT._replace(offset=7),
        GroupMetadata("g", "consumer", 1, "range", "m", 5, ()),
        Tombstone(OffsetCommit, ("g", "t", 1)),
    ):
        append(node, log, encode(record))

    live = node.run(read_live_records(log))

    assert [one.offset for one in live if isinstance(one, OffsetCommit)] == [7]
    assert {type(one) for one in live} == {OffsetCommit, GroupMetadata}


def test_an_empty_log_has_nothing(node: Node) -> None:
    assert node.run(read_live_records(a_log(node))) == []


def test_a_log_is_read_over_all_its_segments(node: Node) -> None:
    log = a_log(node)
    at_once(node.topics.set_configs("__consumer_offsets", {"internal.segment.bytes": "200"}))
    for offset in range(20):
        append(node, log, encode(COMMIT._replace(partition=offset, offset=offset)))
    assert len(log.segments) > 3

    live = node.run(read_live_records(log))

    assert [one.offset for one in live] == list(range(20))


def test_offsets_of_a_transaction_count_when_it_was_committed(node: Node) -> None:
    log = a_log(node)
    how = {"producer_epoch": 0, "is_transactional": True}
    for producer_id in (1, 2, 3):
        pair = encode(COMMIT._replace(partition=producer_id))
        append(node, log, pair, producer_id=producer_id, base_sequence=0, **how)
    append(node, log, COMMIT_MARKER, producer_id=1, is_control=True, **how)
    append(node, log, ABORT_MARKER, producer_id=2, is_control=True, **how)

    live = node.run(read_live_records(log))

    assert [one.partition for one in live] == [1]


def test_what_cannot_be_read_is_passed_over_and_said(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    log = a_log(node)
    key, _ = encode(COMMIT)
    append(node, log, (key, b"\0\3too short"))
    append(node, log, encode(COMMIT._replace(partition=1)))
    append(node, log, (b"\x7f\xff", b"a kind of record that nobody knows yet"))

    with caplog.at_level(logging.WARNING):
        live = node.run(read_live_records(log))

    assert [one.partition for one in live] == [1]
    assert len(caplog.records) == 1
