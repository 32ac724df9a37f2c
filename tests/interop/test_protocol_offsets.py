"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords, on both engines."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.wire import (
    DELETE_RECORDS,
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    OFFSET_FOR_LEADER_EPOCH,
    T0,
    WireClient,
    batch_of,
)

NONE, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, UNKNOWN_LEADER_EPOCH = 0, 1, 3, 75
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
NOTHING = (-1, -1)


@pytest.fixture
def filled(wire: WireClient, topic: str) -> str:
    """Thirty messages in three batches, a second apart, the first at T0."""
    for start in (0, 10, 20):
        wire.produce(topic, batch_of(10, timestamp=T0 + 1000 * start))
    return topic


def found(wire: WireClient, topic: str, timestamp: int, version: int = 11) -> tuple[int, int]:
    answer = wire.list_offset(topic, timestamp, version=version)
    assert answer.error_code == NONE
    return answer.timestamp, answer.offset


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_knows_both_ends_and_times(
    wire: WireClient, filled: str, version: int
) -> None:
    assert found(wire, filled, EARLIEST, version) == (-1, 0)
    assert found(wire, filled, LATEST, version) == (-1, 30)
    assert found(wire, filled, T0 + 5000, version) == (T0 + 5000, 5)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (T0, 0)),
        (T0, (T0, 0)),
        (T0 + 1, (T0 + 1000, 1)),
        (T0 + 9_999, (T0 + 10_000, 10)),
        (T0 + 15_000, (T0 + 15_000, 15)),
        (T0 + 29_000, (T0 + 29_000, 29)),
        (T0 + 29_001, NOTHING),
    ],
)
def test_a_time_finds_the_first_message_at_or_after_it(
    wire: WireClient, filled: str, timestamp: int, expected: tuple[int, int]
) -> None:
    assert found(wire, filled, timestamp) == expected


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_time_is_found_inside_compressed_batches(
    wire: WireClient, topic: str, codec: int
) -> None:
    wire.produce(topic, batch_of(10, codec=codec))

    assert found(wire, topic, T0 + 4_500) == (T0 + 5_000, 5)


def test_times_need_not_ascend(wire: WireClient, topic: str) -> None:
    wire.produce(topic, batch_of(1, timestamp=T0 + 50_000))
    wire.produce(topic, batch_of(1, timestamp=T0))
    wire.produce(topic, batch_of(1, timestamp=T0 + 60_000))

    assert found(wire, topic, T0 + 10) == (T0 + 50_000, 0)
    assert found(wire, topic, T0 + 50_001) == (T0 + 60_000, 2)
    assert found(wire, topic, MAX_TIMESTAMP) == (T0 + 60_000, 2)


def test_the_message_with_the_greatest_time_is_found(wire: WireClient, topic: str) -> None:
    assert found(wire, topic, MAX_TIMESTAMP) == NOTHING
    wire.produce(topic, batch_of(10, timestamp=T0 + 90_000))
    wire.produce(topic, batch_of(10, timestamp=T0))

    assert found(wire, topic, MAX_TIMESTAMP) == (T0 + 99_000, 9)


def test_without_tiered_storage_all_is_local(wire: WireClient, filled: str) -> None:
    assert found(wire, filled, EARLIEST_LOCAL) == (-1, 0)
    assert found(wire, filled, LATEST_TIERED) == (-1, -1)
    assert found(wire, filled, EARLIEST_PENDING_UPLOAD) == (-1, -1)


def test_an_empty_partition_starts_and_ends_at_0(wire: WireClient, topic: str) -> None:
    assert found(wire, topic, EARLIEST) == (-1, 0)
    assert found(wire, topic, LATEST) == (-1, 0)
    assert found(wire, topic, T0) == NOTHING


def test_an_unknown_topic_has_no_offsets(wire: WireClient) -> None:
    answer = wire.list_offset("no-such-topic", LATEST)

    assert (answer.error_code, answer.offset, answer.timestamp) == (UNKNOWN_TOPIC, -1, -1)


def test_the_leader_epoch_of_an_offset_is_told(wire: WireClient, filled: str) -> None:
    assert wire.list_offset(filled, LATEST).leader_epoch == 0
    assert wire.list_offset(filled, T0).leader_epoch == 0


def epoch_end(
    wire: WireClient, topic: str, epoch: int, *, current: int = -1, version: int = 4
) -> Any:
    partition = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    fields: dict[str, Any] = {"topics": [{"topic": topic, "partitions": [partition]}]}
    if version >= 3:
        fields["replica_id"] = -1
    return wire.call(OFFSET_FOR_LEADER_EPOCH, version, **fields).topics[0].partitions[0]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_only_epoch_ends_where_the_log_ends(
    wire: WireClient, filled: str, version: int
) -> None:
    answer = epoch_end(wire, filled, 0, version=version)

    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (NONE, 0, 30)


def test_an_epoch_that_never_was_has_no_end(wire: WireClient, filled: str) -> None:
    answer = epoch_end(wire, filled, 5)

    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (NONE, -1, -1)


def test_epochs_of_other_leaders_and_topics_are_errors(wire: WireClient, filled: str) -> None:
    assert epoch_end(wire, filled, 0, current=9).error_code == UNKNOWN_LEADER_EPOCH
    assert epoch_end(wire, "no-such-topic", 0).error_code == UNKNOWN_TOPIC


def delete_records(wire: WireClient, topic: str, offset: int, partition: int = 0) -> Any:
    partitions = [{"partition_index": partition, "offset": offset}]
    topics = [{"name": topic, "partitions": partitions}]
    return wire.call(DELETE_RECORDS, 2, topics=topics, timeout=10_000).topics[0].partitions[0]


def test_records_are_deleted_up_to_an_offset(wire: WireClient, filled: str) -> None:
    answer = delete_records(wire, filled, 12)

    assert (answer.error_code, answer.low_watermark) == (NONE, 12)
    assert found(wire, filled, EARLIEST) == (-1, 12)
    assert found(wire, filled, T0) == (T0 + 12_000, 12)


def test_minus_1_deletes_all_there_is(wire: WireClient, filled: str) -> None:
    answer = delete_records(wire, filled, -1)

    assert (answer.error_code, answer.low_watermark) == (NONE, 30)
    assert found(wire, filled, EARLIEST) == found(wire, filled, LATEST) == (-1, 30)
    assert wire.produce(filled, batch_of(1)).base_offset == 30


def test_deleting_what_is_gone_already_changes_nothing(wire: WireClient, filled: str) -> None:
    delete_records(wire, filled, 12)

    answer = delete_records(wire, filled, 5)

    assert (answer.error_code, answer.low_watermark) == (NONE, 12)


def test_records_beyond_the_end_cannot_be_deleted(wire: WireClient, filled: str) -> None:
    answer = delete_records(wire, filled, 31)

    assert (answer.error_code, answer.low_watermark) == (OFFSET_OUT_OF_RANGE, -1)
    assert found(wire, filled, EARLIEST) == (-1, 0)


def test_an_unknown_partition_has_no_records_to_delete(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    assert delete_records(wire, "no-such-topic", 0).error_code == UNKNOWN_TOPIC
    assert delete_records(wire, new_topic(), 0, partition=3).error_code == UNKNOWN_TOPIC
