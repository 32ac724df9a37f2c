from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.leave_group.v2.request import LeaveGroupRequest as OneMemberRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from tests.broker.handlers.group_requests import LEAVE, a_stable_member

from headrace.broker.state import BrokerState


def state(broker: BrokerState) -> str:
    return broker.groups.coordinator.describe_classic("g").state


@pytest.mark.parametrize("version", range(3))
def test_a_member_leaves_for_itself(ask: Any, broker: BrokerState, version: int) -> None:
    joined = a_stable_member(ask)
    request = OneMemberRequest(group_id="g", member_id=joined.member_id)

    assert ask(LEAVE, request, version).error_code == ErrorCode.none
    assert state(broker) == "Empty"
    assert ask(LEAVE, request, version).error_code == ErrorCode.unknown_member_id


@pytest.mark.parametrize("version", range(3, 6))
def test_several_leave_each_with_its_own_result(
    ask: Any, broker: BrokerState, version: int
) -> None:
    joined = a_stable_member(ask)
    members = (
        MemberIdentity(member_id=joined.member_id),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="", group_instance_id="no-instance"),
    )

    answer = ask(LEAVE, LeaveGroupRequest(group_id="g", members=members), version)

    assert answer.error_code == ErrorCode.none
    assert [(one.member_id, one.error_code) for one in answer.members] == [
        (joined.member_id, ErrorCode.none),
        ("nobody", ErrorCode.unknown_member_id),
        ("", ErrorCode.unknown_member_id),
    ]
    assert state(broker) == "Empty"


def test_nobody_is_in_a_group_that_is_not_there(ask: Any) -> None:
    members = (MemberIdentity(member_id="m"),)

    answer = ask(LEAVE, LeaveGroupRequest(group_id="g", members=members))
    assert answer.error_code == ErrorCode.none
    assert [one.error_code for one in answer.members] == [ErrorCode.unknown_member_id]

    answer = ask(LEAVE, LeaveGroupRequest(group_id="", members=members))
    assert answer.error_code == ErrorCode.invalid_group_id
    assert answer.members == ()
