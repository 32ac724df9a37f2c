import dataclasses
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from tests.broker.handlers.group_requests import (
    JOIN,
    READS_T,
    a_join,
    a_stable_member,
    milliseconds,
)

from headrace.broker.state import BrokerState


@pytest.mark.parametrize("version", range(10))
def test_who_joins_alone_leads(ask: Any, version: int) -> None:
    member_id = ""
    if version >= 4:
        sent_back = ask(JOIN, a_join(), version)
        assert sent_back.error_code == ErrorCode.member_id_required
        assert sent_back.generation_id == -1
        assert sent_back.protocol_name == (None if version >= 7 else "")
        member_id = sent_back.member_id
        assert member_id.startswith("client-")

    joined = ask(JOIN, a_join(member_id=member_id), version)

    assert joined.error_code == ErrorCode.none
    assert (joined.generation_id, joined.protocol_name) == (1, "range")
    assert joined.leader == joined.member_id != ""
    (member,) = joined.members
    assert (member.member_id, member.metadata) == (joined.member_id, READS_T)
    if version >= 7:
        assert joined.protocol_type == "consumer"
    if version >= 9:
        assert joined.skip_assignment is False


def test_members_that_join_together_are_in_one_generation(ask: Any, ask_all: Any) -> None:
    first = a_stable_member(ask)

    joined = ask_all((JOIN, a_join(), 3), (JOIN, a_join(member_id=first.member_id), 3))

    assert [one.generation_id for one in joined] == [2, 2]
    assert {one.leader for one in joined} == {first.member_id}
    assert sorted(len(one.members) for one in joined) == [0, 2]


def test_a_first_version_has_no_rebalance_time_and_takes_that_of_the_session(
    ask: Any, broker: BrokerState
) -> None:
    joined = ask(JOIN, a_join(), 0)

    group = broker.groups.coordinator.registry.by_id.get("g")
    assert group is not None
    member = group.members[joined.member_id]
    assert member.rebalance_timeout_ms == member.session_timeout_ms == 10_000
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")


@pytest.mark.parametrize(
    ("changes", "error_code"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"member_id": "nobody"}, ErrorCode.unknown_member_id),
        ({"session_timeout": milliseconds(1)}, ErrorCode.invalid_session_timeout),
        ({"session_timeout": milliseconds(9_999_999)}, ErrorCode.invalid_session_timeout),
        ({"protocols": ()}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_type": ""}, ErrorCode.inconsistent_group_protocol),
    ],
)
@pytest.mark.parametrize("version", [0, 5, 9])
def test_who_may_not_join_is_told_why(
    ask: Any, broker: BrokerState, changes: Any, error_code: ErrorCode, version: int
) -> None:
    answer = ask(JOIN, dataclasses.replace(a_join(), **changes), version)

    assert answer.error_code == error_code
    assert answer.generation_id == -1
    assert answer.members == ()
    assert broker.groups.coordinator.registry.groups() == []
