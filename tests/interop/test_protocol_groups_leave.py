"""LeaveGroup of classic groups, on both engines: members that go, and those that are sent away."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.group_wire import (
    FENCED_INSTANCE,
    INVALID_GROUP_ID,
    LEAVE_GROUP,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER,
    Member,
    ask,
    form,
    settle,
    state_of,
    versions_of,
)
from tests.interop.wire import WireClient

NewMember = Callable[..., Member]


def leave(wire: WireClient, group_id: str, *members: dict[str, Any], version: int = 5) -> Any:
    return ask(wire, LEAVE_GROUP, version, group_id=group_id, members=list(members))


def results(answer: Any) -> list[tuple[str, str | None, int]]:
    return [
        (member.member_id, member.group_instance_id, int(member.error_code))
        for member in answer.members
    ]


@pytest.mark.parametrize("version", versions_of(LEAVE_GROUP))
def test_the_last_member_leaves_an_empty_group_in_every_version(
    wire: WireClient, new_member: NewMember, group_id: str, version: int
) -> None:
    member = new_member()
    settle([member])

    answer = member.leave(version=version)

    assert answer.error_code == NONE
    if version >= 3:
        assert results(answer) == [(member.member_id, None, NONE)]
    assert state_of(wire, group_id) == "Empty"
    assert member.heartbeat() == UNKNOWN_MEMBER


@pytest.mark.parametrize("version", versions_of(LEAVE_GROUP))
def test_a_stranger_cannot_leave(wire: WireClient, new_member: NewMember, version: int) -> None:
    settle([new_member()])
    stranger = new_member()
    stranger.member_id = "nobody"

    answer = stranger.leave(version=version)

    if version >= 3:
        assert answer.error_code == NONE
        assert results(answer) == [("nobody", None, UNKNOWN_MEMBER)]
    else:
        assert answer.error_code == UNKNOWN_MEMBER


@pytest.mark.parametrize("version", versions_of(LEAVE_GROUP))
def test_nobody_can_leave_a_group_that_is_not_there(
    wire: WireClient, new_member: NewMember, version: int
) -> None:
    stranger = new_member()
    stranger.member_id = "nobody"

    answer = stranger.leave(version=version)

    assert answer.error_code == (NONE if version >= 3 else UNKNOWN_MEMBER)
    if version >= 3:
        assert results(answer) == [("nobody", None, UNKNOWN_MEMBER)]


def test_a_group_must_have_a_name(wire: WireClient) -> None:
    answer = leave(wire, "", {"member_id": "nobody", "group_instance_id": None})

    assert (answer.error_code, answer.members) == (INVALID_GROUP_ID, ())


def test_the_others_are_told_to_join_again(new_member: NewMember) -> None:
    staying, leaving = new_member(), new_member()
    settle([staying, leaving])

    leaving.leave()

    assert staying.heartbeat() == REBALANCE_IN_PROGRESS
    answer = staying.join()
    assert (answer.generation_id, len(answer.members)) == (3, 1)


def test_who_leads_next_is_chosen_when_the_leader_leaves(new_member: NewMember) -> None:
    leader, follower = new_member(), new_member()
    settle([leader, follower])

    leader.leave()
    answer = follower.join()

    assert (answer.leader, answer.generation_id) == (follower.member_id, 3)


def test_a_newcomer_with_an_id_may_leave_before_it_has_joined(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    newcomer = new_member()
    assert newcomer.join().error_code == MEMBER_ID_REQUIRED

    assert results(newcomer.leave()) == [(newcomer.member_id, None, NONE)]
    assert newcomer.join().error_code == UNKNOWN_MEMBER


def test_a_waiting_newcomer_no_longer_holds_up_the_others_when_it_has_left(
    new_member: NewMember,
) -> None:
    leader, newcomer = new_member(), new_member()
    settle([leader])
    assert newcomer.join().error_code == MEMBER_ID_REQUIRED
    leader.send_join()

    newcomer.leave()

    assert len(leader.joined().members) == 1


def test_a_waiting_join_is_refused_when_its_member_leaves(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    settled, waiting = new_member(), new_member()
    settle([settled])
    assert waiting.join().error_code == MEMBER_ID_REQUIRED
    waiting.send_join()
    settled.wait_for_heartbeat(REBALANCE_IN_PROGRESS)

    left = leave(wire, group_id, {"member_id": waiting.member_id, "group_instance_id": None})
    answer = waiting.receive()

    assert results(left) == [(waiting.member_id, None, NONE)]
    assert (answer.error_code, answer.member_id) == (UNKNOWN_MEMBER, "")


def test_a_member_may_leave_before_the_assignment_is_there(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    leader, follower = new_member(), new_member()
    form([leader, follower])

    follower.leave()

    assert leader.heartbeat() == REBALANCE_IN_PROGRESS
    assert state_of(wire, group_id) == "PreparingRebalance"


def test_several_members_leave_in_one_request(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    one, two = new_member(), new_member(instance_id="second")
    settle([one, two])

    answer = leave(
        wire,
        group_id,
        {"member_id": one.member_id, "group_instance_id": None},
        {"member_id": "", "group_instance_id": "second"},
        {"member_id": "nobody", "group_instance_id": None},
        {"member_id": "", "group_instance_id": "nobody"},
    )

    assert answer.error_code == NONE
    assert results(answer) == [
        (one.member_id, None, NONE),
        ("", "second", NONE),
        ("nobody", None, UNKNOWN_MEMBER),
        ("", "nobody", UNKNOWN_MEMBER),
    ]
    assert state_of(wire, group_id) == "Empty"


def test_an_instance_is_sent_away_by_name_and_only_with_its_own_id(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member = new_member(instance_id="mine")
    settle([member])

    wrong = leave(wire, group_id, {"member_id": "nobody", "group_instance_id": "mine"})
    right = leave(wire, group_id, {"member_id": member.member_id, "group_instance_id": "mine"})

    assert results(wrong) == [("nobody", "mine", FENCED_INSTANCE)]
    assert results(right) == [(member.member_id, "mine", NONE)]
    assert member.heartbeat() == UNKNOWN_MEMBER


def test_a_request_that_names_nobody_changes_nothing(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member = new_member()
    settle([member])

    answer = leave(wire, group_id)

    assert (answer.error_code, answer.members) == (NONE, ())
    assert member.heartbeat() == NONE
