from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.offset_delete.v0.request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.at_once import at_once
from tests.broker.handlers.group_requests import (
    COMMIT,
    DELETE_OFFSETS,
    a_commit,
    a_stable_member,
)

from headrace.broker.state import BrokerState


def a_request(group_id: str, **partitions: tuple[int, ...]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                ),
            )
            for name, indexes in partitions.items()
        ),
    )


def codes(answer: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }


def test_offsets_go_where_nobody_reads(ask: Any, broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))
    at_once(broker.topics.create("u", 2, {}))
    joined = a_stable_member(ask)
    topics = (("t", 0, 5), ("u", 0, 6))
    ask(COMMIT, a_commit("g", joined.member_id, 1, topics=topics), 9)

    answer = ask(DELETE_OFFSETS, a_request("g", t=(0, 9), u=(0, 1), nope=(0,)))

    assert answer.error_code == ErrorCode.none
    assert codes(answer) == {
        ("t", 0): ErrorCode.group_subscribed_to_topic,
        ("t", 9): ErrorCode.unknown_topic_or_partition,
        ("u", 0): ErrorCode.none,
        ("u", 1): ErrorCode.none,
        ("nope", 0): ErrorCode.unknown_topic_or_partition,
    }
    assert set(broker.groups.coordinator.registry.offsets.of_group("g")) == {"t"}


@pytest.mark.parametrize(
    ("group_id", "error_code"),
    [("", ErrorCode.invalid_group_id), ("none", ErrorCode.group_id_not_found)],
)
def test_a_group_that_is_not_there_is_told_as_a_whole(
    ask: Any, group_id: str, error_code: ErrorCode
) -> None:
    answer = ask(DELETE_OFFSETS, a_request(group_id, t=(0,)))

    assert answer.error_code == error_code
    assert answer.topics == ()
