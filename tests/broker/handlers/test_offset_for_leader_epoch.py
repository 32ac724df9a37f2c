from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

OFFSET_FOR_LEADER_EPOCH = 23


@pytest.fixture(autouse=True)
def _topic(broker: BrokerState, append: Any) -> None:
    at_once(broker.topics.create("t", 2, {}))
    append("t", 0, 1_700_000_000_000, 1_700_000_000_000)


def a_request(
    partition: int = 0, leader_epoch: int = 0, current: int = -1, topic: str = "t"
) -> OffsetForLeaderEpochRequest:
    row = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=leader_epoch
    )
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=(OffsetForLeaderTopic(topic=topic, partitions=(row,)),)
    )


def the_row(answer: Any) -> Any:
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", VERSIONS["offset_for_leader_epoch"])
def test_every_version_finds_the_end_of_the_current_epoch(version: int, ask: Any) -> None:
    row = the_row(ask(OFFSET_FOR_LEADER_EPOCH, a_request(), version))

    assert (row.error_code, row.partition) == (ErrorCode.none, 0)
    assert (row.leader_epoch, row.end_offset) == (0, 2)


def test_the_current_epoch_of_an_empty_log_ends_at_0(ask: Any) -> None:
    row = the_row(ask(OFFSET_FOR_LEADER_EPOCH, a_request(partition=1)))

    assert (row.leader_epoch, row.end_offset) == (0, 0)


def test_the_current_epoch_has_an_end_even_when_the_log_has_no_record_of_it(
    broker: BrokerState, ask: Any
) -> None:
    broker.topics.log("t", 0).leader_epoch = 6

    row = the_row(ask(OFFSET_FOR_LEADER_EPOCH, a_request(leader_epoch=6)))

    assert (row.leader_epoch, row.end_offset) == (6, 2)


def test_an_epoch_that_never_was_has_no_end(ask: Any) -> None:
    row = the_row(ask(OFFSET_FOR_LEADER_EPOCH, a_request(leader_epoch=4)))

    assert (row.error_code, row.leader_epoch, row.end_offset) == (ErrorCode.none, -1, -1)


@pytest.mark.parametrize(
    ("current", "error_code"),
    [
        (2, ErrorCode.fenced_leader_epoch),
        (3, ErrorCode.none),
        (4, ErrorCode.unknown_leader_epoch),
    ],
)
def test_the_clients_idea_of_the_leader_epoch_is_checked(
    current: int, error_code: ErrorCode, broker: BrokerState, ask: Any
) -> None:
    broker.topics.log("t", 0).leader_epoch = 3

    row = the_row(ask(OFFSET_FOR_LEADER_EPOCH, a_request(leader_epoch=3, current=current)))

    assert row.error_code == error_code


def test_an_unknown_partition_is_an_error(ask: Any) -> None:
    row = the_row(ask(OFFSET_FOR_LEADER_EPOCH, a_request(topic="nope")))

    assert row.error_code == ErrorCode.unknown_topic_or_partition
