from typing import Any

import pytest
from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.group_requests import (
    CONSUMER_DESCRIBE,
    CONSUMER_HEARTBEAT,
    a_beat,
    a_stable_member,
    topic_id_of,
)

from headrace.broker.state import BrokerState

NOT_ASKED = -(2**31)


@pytest.fixture(autouse=True)
def topic(broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))


def describe(ask: Any, *names: str, version: int = 1, operations: bool = False) -> Any:
    request = ConsumerGroupDescribeRequest(
        group_ids=names, include_authorized_operations=operations
    )
    return ask(CONSUMER_DESCRIBE, request, version).groups


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_shown_with_what_its_members_have_and_shall_have(
    ask: Any, broker: BrokerState, version: int
) -> None:
    epoch = ask(CONSUMER_HEARTBEAT, a_beat()).member_epoch

    (group,) = describe(ask, "g", version=version, operations=True)

    assert (group.error_code, group.group_state) == (ErrorCode.none, "Stable")
    assert (group.group_epoch, group.assignment_epoch) == (epoch, epoch)
    assert group.assignor_name == "uniform"
    assert group.authorized_operations == 3400
    (member,) = group.members
    assert (member.member_id, member.member_epoch) == ("m", epoch)
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.subscribed_topic_names == ("t",)
    for assignment in (member.assignment, member.target_assignment):
        (assigned,) = assignment.topic_partitions
        assert (assigned.topic_id, assigned.topic_name) == (topic_id_of(broker), "t")
        assert assigned.partitions == (0, 1)
    if version:
        assert member.member_type == 1


def test_a_deleted_topic_is_no_longer_shown(ask: Any, broker: BrokerState) -> None:
    ask(CONSUMER_HEARTBEAT, a_beat())
    at_once(broker.topics.delete("t"))

    (group,) = describe(ask, "g")

    assert group.members[0].assignment.topic_partitions == ()


def test_what_is_no_such_group_is_told_so(ask: Any) -> None:
    a_stable_member(ask, "classic")

    groups = describe(ask, "classic", "none", "", operations=True)

    assert [(one.error_code, one.error_message) for one in groups] == [
        (ErrorCode.group_id_not_found, "Group classic is not a consumer group."),
        (ErrorCode.group_id_not_found, "Group none not found."),
        (ErrorCode.invalid_group_id, None),
    ]
    assert {one.authorized_operations for one in groups} == {NOT_ASKED}
