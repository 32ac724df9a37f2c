from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

ALTER_PARTITION_REASSIGNMENTS = 45
NODE_ID = 5


@pytest.fixture(autouse=True)
def _topic(broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))


def a_request(
    *wishes: tuple[str, int, tuple[int, ...] | None], may_change: bool = True
) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change,
        topics=tuple(
            ReassignableTopic(
                name=name,
                partitions=(ReassignablePartition(partition_index=index, replicas=replicas),),
            )
            for name, index, replicas in wishes
        ),
    )


def results(answer: Any) -> list[tuple[str, int, ErrorCode, str | None]]:
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    return [
        (topic.name, one.partition_index, one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
    ]


@pytest.mark.parametrize("version", VERSIONS["alter_partition_reassignments"])
def test_every_version_accepts_the_one_broker(version: int, ask: Any) -> None:
    asked = a_request(("t", 0, (NODE_ID,)), ("t", 1, (NODE_ID,)))

    answer = ask(ALTER_PARTITION_REASSIGNMENTS, asked, version)

    assert results(answer) == [("t", 0, ErrorCode.none, None), ("t", 1, ErrorCode.none, None)]


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        ((6,), "includes broker 6, but no such broker is registered."),
        ((NODE_ID, 6), "includes broker 6, but no such broker is registered."),
        ((NODE_ID, NODE_ID), "includes the broker 5 more than once."),
        ((), "includes an empty replica list."),
    ],
)
def test_replicas_elsewhere_are_refused_in_kafkas_words(
    replicas: tuple[int, ...], words: str, ask: Any
) -> None:
    (result,) = results(ask(ALTER_PARTITION_REASSIGNMENTS, a_request(("t", 0, replicas))))

    assert result[2] == ErrorCode.invalid_replica_assignment
    assert result[3] == f"The manual partition assignment {words}"


def test_there_is_never_one_to_cancel(ask: Any) -> None:
    ask(ALTER_PARTITION_REASSIGNMENTS, a_request(("t", 0, (NODE_ID,))))

    answer = ask(ALTER_PARTITION_REASSIGNMENTS, a_request(("t", 0, None)))

    assert results(answer) == [("t", 0, ErrorCode.no_reassignment_in_progress, None)]


@pytest.mark.parametrize("replicas", [None, (NODE_ID,), (6,)])
def test_what_is_not_there_cannot_be_reassigned(replicas: tuple[int, ...] | None, ask: Any) -> None:
    asked = a_request(("t", 2, replicas), ("t", -1, replicas), ("nope", 0, replicas))

    unknown = ErrorCode.unknown_topic_or_partition
    assert results(ask(ALTER_PARTITION_REASSIGNMENTS, asked)) == [
        ("t", 2, unknown, "Unable to find partition t:2."),
        ("t", -1, unknown, "Unable to find partition t:-1."),
        ("nope", 0, unknown, "Unable to find a topic named nope."),
    ]


@pytest.mark.parametrize("may_change", [True, False])
def test_the_answer_repeats_whether_the_replication_factor_may_change(
    may_change: bool, ask: Any
) -> None:
    answer = ask(ALTER_PARTITION_REASSIGNMENTS, a_request(may_change=may_change))

    assert answer.allow_replication_factor_change is may_change
    assert (answer.error_code, answer.error_message, answer.responses) == (ErrorCode.none, "", ())
