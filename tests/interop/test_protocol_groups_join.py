"""JoinGroup of classic groups, on both engines: who gets in, who leads, and who is refused."""

from collections.abc import Callable

import pytest
from tests.interop.group_wire import (
    GROUP_MAX_SIZE,
    INCONSISTENT_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    JOIN_GROUP,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    SHORT_SESSION_MS,
    UNKNOWN_MEMBER,
    WISHES,
    Member,
    form,
    settle,
    state_of,
    subscription,
    versions_of,
)
from tests.interop.wire import Engine, WireClient

OTHER_WISHES = subscription("other")
NewMember = Callable[..., Member]


@pytest.mark.parametrize("version", versions_of(JOIN_GROUP))
def test_a_lone_member_leads_its_group_in_every_version(
    new_member: NewMember, version: int
) -> None:
    member = new_member()

    answer = member.enter(version=version)

    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (NONE, 1, "range")
    assert answer.leader == answer.member_id
    (itself,) = answer.members
    assert (itself.member_id, itself.metadata) == (answer.member_id, WISHES)
    if version >= 5:
        assert itself.group_instance_id is None
    if version >= 7:
        assert answer.protocol_type == "consumer"
    if version >= 9:
        assert answer.skip_assignment is False


@pytest.mark.parametrize("version", versions_of(JOIN_GROUP))
def test_from_v4_a_newcomer_is_sent_back_with_an_id(new_member: NewMember, version: int) -> None:
    answer = new_member().join(version=version)

    assert answer.error_code == (MEMBER_ID_REQUIRED if version >= 4 else NONE)
    assert answer.member_id.startswith("interop-")
    assert len(answer.member_id) == len("interop-") + 36
    if version >= 4:
        assert (answer.generation_id, answer.leader, answer.members) == (-1, "", ())
        assert answer.protocol_name == (None if version >= 7 else "")
    if version >= 7:
        assert answer.protocol_type == (None if version >= 4 else "consumer")


def test_only_the_leader_is_told_of_the_others(new_member: NewMember) -> None:
    members = [new_member(), new_member(), new_member()]

    leading, *following = form(members)

    assert leading.leader == members[0].member_id
    assert {told.member_id for told in leading.members} == {each.member_id for each in members}
    assert [answer.members for answer in following] == [(), ()]
    assert {answer.leader for answer in following} == {leading.leader}
    assert {answer.generation_id for answer in (leading, *following)} == {2}


def test_the_most_popular_common_protocol_is_chosen(new_member: NewMember) -> None:
    def wishes(*names: str) -> list[dict[str, object]]:
        return [{"name": name, "metadata": subscription(name)} for name in names]

    members = [
        new_member(protocols=wishes("first", "second", "third")),
        new_member(protocols=wishes("third", "second")),
        new_member(protocols=wishes("third", "second", "fourth")),
    ]

    leading, *_ = form(members)

    assert leading.protocol_name == "third"
    assert {told.metadata for told in leading.members} == {subscription("third")}


def test_a_member_without_a_common_protocol_is_refused(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    settle([new_member()])

    stranger = new_member(protocols=[{"name": "other", "metadata": WISHES}]).join()
    other_type = new_member(protocol_type="connect").join()

    assert stranger.error_code == other_type.error_code == INCONSISTENT_PROTOCOL
    assert (stranger.member_id, stranger.generation_id, stranger.leader) == ("", -1, "")
    assert stranger.protocol_name is None
    assert state_of(wire, group_id) == "Stable"


@pytest.mark.parametrize("protocols", [[], [{"name": "", "metadata": WISHES}]])
def test_a_first_member_must_name_its_protocols(
    new_member: NewMember, protocols: list[dict[str, object]]
) -> None:
    answer = new_member(protocols=protocols).join(version=3)

    assert answer.error_code == (INCONSISTENT_PROTOCOL if not protocols else NONE)


def test_a_first_member_must_name_its_protocol_type(new_member: NewMember) -> None:
    assert new_member(protocol_type="").join().error_code == INCONSISTENT_PROTOCOL


@pytest.mark.parametrize("session_timeout", [9, 1_800_001, 0, -1])
def test_a_session_time_out_beyond_the_limits_is_refused(
    new_member: NewMember, session_timeout: int
) -> None:
    answer = new_member(session_timeout=session_timeout).join()

    assert (answer.error_code, answer.member_id) == (INVALID_SESSION_TIMEOUT, "")


def test_a_group_must_have_a_name(new_member: NewMember) -> None:
    answer = new_member().join(group_id="")

    assert (answer.error_code, answer.member_id) == (INVALID_GROUP_ID, "")


def test_an_unknown_member_id_is_refused(new_member: NewMember) -> None:
    stranger = new_member()
    empty = stranger.join(member_id="nobody")
    settle([new_member()])
    stable = stranger.join(member_id="nobody")

    assert empty.error_code == stable.error_code == UNKNOWN_MEMBER
    assert empty.member_id == stable.member_id == "nobody"
    assert (stable.generation_id, stable.leader, stable.protocol_name) == (-1, "", None)


def test_the_leader_that_joins_again_starts_a_rebalance(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    leader, follower = new_member(), new_member()
    settle([leader, follower])

    leader.send_join()
    follower.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
    state = state_of(wire, group_id)
    follower.send_join()

    assert state == "PreparingRebalance"
    assert leader.joined().generation_id == follower.joined().generation_id == 3


def test_a_follower_that_joins_again_unchanged_is_told_what_it_knows(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    leader, follower = new_member(), new_member()
    settle([leader, follower])

    answer = follower.join()

    assert (answer.error_code, answer.generation_id, answer.members) == (NONE, 2, ())
    assert answer.leader == leader.member_id
    assert state_of(wire, group_id) == "Stable"


def test_a_follower_with_new_wishes_starts_a_rebalance(new_member: NewMember) -> None:
    leader, follower = new_member(), new_member()
    settle([leader, follower])

    follower.send_join(protocols=[{"name": "range", "metadata": OTHER_WISHES}])
    leader.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
    leader.send_join()

    told = {each.member_id: each.metadata for each in leader.joined().members}
    assert told == {leader.member_id: WISHES, follower.member_id: OTHER_WISHES}
    assert follower.joined().generation_id == 3


def test_before_the_assignment_is_there_an_unchanged_join_is_answered_at_once(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    leader, follower = new_member(), new_member()
    form([leader, follower])

    again, follower_again = leader.join(), follower.join()

    assert (again.generation_id, len(again.members)) == (2, 2)
    assert (follower_again.generation_id, follower_again.members) == (2, ())
    assert state_of(wire, group_id) == "CompletingRebalance"


def test_a_member_that_does_not_join_again_in_time_is_left_behind(
    engine: Engine, new_member: NewMember
) -> None:
    slow = new_member(rebalance_timeout=SHORT_SESSION_MS)
    quick = new_member(rebalance_timeout=SHORT_SESSION_MS)
    settle([slow])

    assert quick.join().error_code == MEMBER_ID_REQUIRED
    quick.send_join()
    slow.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
    engine.pass_time(SHORT_SESSION_MS / 1000)
    joined = quick.joined()

    assert (joined.generation_id, joined.leader) == (2, quick.member_id)
    assert slow.heartbeat() == UNKNOWN_MEMBER
    assert slow.join().error_code == UNKNOWN_MEMBER


@pytest.mark.parametrize("version", [0, 1])
def test_v0_waits_for_the_session_time_out_instead(new_member: NewMember, version: int) -> None:
    slow = new_member(session_timeout=50, rebalance_timeout=20_000)
    slow.enter(version=0)
    quick = new_member(session_timeout=50, rebalance_timeout=50)

    joined = quick.enter(version=version)

    assert joined.leader == quick.member_id


def test_a_newcomer_that_never_comes_back_with_its_id_is_forgotten(
    new_member: NewMember,
) -> None:
    leader, newcomer = new_member(), new_member(session_timeout=50)
    settle([leader])
    assert newcomer.join().error_code == MEMBER_ID_REQUIRED

    # The leader's join waits for the newcomer, as long as that one has time.
    answer = leader.join()

    assert [told.member_id for told in answer.members] == [leader.member_id]
    assert newcomer.join().error_code == UNKNOWN_MEMBER


def test_a_group_has_no_more_members_than_group_max_size(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    members = [new_member() for _ in range(6)]
    form(members)
    extra = new_member()

    refused, refused_in_v3 = extra.join(), extra.join(version=3)

    assert refused.error_code == refused_in_v3.error_code == GROUP_MAX_SIZE
    assert (refused.member_id, refused.generation_id) == ("", -1)
    assert state_of(wire, group_id) == "CompletingRebalance"


def test_a_second_join_of_a_waiting_member_takes_the_place_of_the_first(
    new_member: NewMember,
) -> None:
    leader, waiting = new_member(), new_member()
    settle([leader])
    assert waiting.join().error_code == MEMBER_ID_REQUIRED
    waiting.send_join()
    leader.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
    again = new_member()
    again.member_id = waiting.member_id
    again.send_join()
    leader.send_join()

    assert again.joined().error_code == NONE
    assert leader.joined().generation_id == 2
