from typing import Any

import pytest
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState

CREATE_PARTITIONS = 37


@pytest.fixture(autouse=True)
def _topic(broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))


def a_topic(
    name: str = "t", count: int = 4, assignments: list[tuple[int, ...]] | None = None
) -> CreatePartitionsTopic:
    rows = assignments and tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in assignments)
    return CreatePartitionsTopic(name=name, count=count, assignments=rows or None)


def a_request(
    *topics: CreatePartitionsTopic, validate_only: bool = False
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout=NO_THROTTLE, validate_only=validate_only)


@pytest.mark.parametrize("version", VERSIONS["create_partitions"])
def test_every_version_adds_partitions(version: int, broker: BrokerState, ask: Any) -> None:
    (result,) = ask(CREATE_PARTITIONS, a_request(a_topic()), version).results

    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.none, None)
    assert broker.topics.get("t").partition_count == 4
    assert broker.topics.log("t", 3).log_end_offset == 0


def test_validate_only_adds_nothing(broker: BrokerState, ask: Any) -> None:
    (result,) = ask(CREATE_PARTITIONS, a_request(a_topic(), validate_only=True)).results

    assert result.error_code == ErrorCode.none
    assert broker.topics.get("t").partition_count == 2


def test_assignments_to_this_broker_are_accepted(broker: BrokerState, ask: Any) -> None:
    (result,) = ask(CREATE_PARTITIONS, a_request(a_topic(assignments=[(5,), (5,)]))).results

    assert result.error_code == ErrorCode.none
    assert broker.topics.get("t").partition_count == 4


@pytest.mark.parametrize(
    ("asked", "error_code", "message"),
    [
        (a_topic(count=2), ErrorCode.invalid_partitions, "Topic already has 2 partition(s)."),
        (
            a_topic(count=1),
            ErrorCode.invalid_partitions,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (a_topic(count=10_001), ErrorCode.invalid_partitions, "at most 10000"),
        (a_topic("nope"), ErrorCode.unknown_topic_or_partition, "nope"),
        (
            a_topic(assignments=[(5,)]),
            ErrorCode.invalid_replica_assignment,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s)",
        ),
        (
            a_topic(assignments=[(5,), (6,)]),
            ErrorCode.invalid_replica_assignment,
            "no such broker is registered",
        ),
    ],
)
def test_an_impossible_increase_is_refused_in_kafkas_words(
    asked: CreatePartitionsTopic, error_code: ErrorCode, message: str, broker: BrokerState, ask: Any
) -> None:
    (result,) = ask(CREATE_PARTITIONS, a_request(asked)).results

    assert result.error_code == error_code
    assert message in result.error_message
    assert broker.topics.get("t").partition_count == 2


def test_a_topic_named_twice_gets_no_partitions(broker: BrokerState, ask: Any) -> None:
    answer = ask(CREATE_PARTITIONS, a_request(a_topic(count=3), a_topic(count=4)))

    assert [row.error_message for row in answer.results] == ["Duplicate topic name."]
    assert broker.topics.get("t").partition_count == 2
