"""SyncGroup and Heartbeat of classic groups, on both engines, in each state of a group."""

from collections.abc import Callable

import pytest
from tests.interop.group_wire import (
    HEARTBEAT,
    ILLEGAL_GENERATION,
    INCONSISTENT_PROTOCOL,
    INVALID_GROUP_ID,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    SHORT_SESSION_MS,
    SYNC_GROUP,
    UNKNOWN_MEMBER,
    Member,
    form,
    settle,
    state_of,
    versions_of,
    wait_for,
)
from tests.interop.wire import Engine, WireClient

NewMember = Callable[..., Member]


@pytest.fixture
def rebalancing(new_member: NewMember) -> Member:
    """A settled member that has not yet heard of a newcomer: the group prepares a rebalance."""
    settled, newcomer = new_member(), new_member()
    settle([settled])
    assert newcomer.join().error_code == MEMBER_ID_REQUIRED
    newcomer.send_join()
    settled.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
    return settled


@pytest.mark.parametrize("version", versions_of(SYNC_GROUP))
def test_the_leader_brings_the_shares_of_all_in_every_version(
    wire: WireClient, new_member: NewMember, group_id: str, version: int
) -> None:
    leader, follower = new_member(), new_member()
    form([leader, follower])
    follower.send_sync(version=version)

    led = leader.sync({leader.member_id: b"first", follower.member_id: b"second"}, version=version)
    followed = follower.receive()

    assert (led.error_code, led.assignment) == (NONE, b"first")
    assert (followed.error_code, followed.assignment) == (NONE, b"second")
    if version >= 5:
        assert (led.protocol_type, led.protocol_name) == ("consumer", "range")
        assert (followed.protocol_type, followed.protocol_name) == ("consumer", "range")
    assert state_of(wire, group_id) == "Stable"


def test_who_is_given_nothing_gets_an_empty_share(new_member: NewMember) -> None:
    leader, follower = new_member(), new_member()
    form([leader, follower])

    led = leader.sync({"nobody": b"lost"})
    followed = follower.sync({follower.member_id: b"only the leader decides"})

    assert (led.error_code, led.assignment) == (NONE, b"")
    assert (followed.error_code, followed.assignment) == (NONE, b"")


def test_in_a_stable_group_a_sync_tells_the_share_again(new_member: NewMember) -> None:
    leader, follower = new_member(), new_member()
    settle([leader, follower])

    led = leader.sync({leader.member_id: b"too late"})
    followed = follower.sync()

    assert (led.error_code, led.assignment) == (NONE, b"share of 0")
    assert (followed.error_code, followed.assignment) == (NONE, b"share of 1")


def test_a_sync_must_fit_the_group(new_member: NewMember) -> None:
    leader = new_member()
    form([leader])

    def error_of(**fields: object) -> int:
        answer = leader.sync(**fields)
        assert answer.assignment == b""
        return int(answer.error_code)

    assert error_of(generation_id=0) == ILLEGAL_GENERATION
    assert error_of(generation_id=2) == ILLEGAL_GENERATION
    assert error_of(member_id="nobody") == UNKNOWN_MEMBER
    assert error_of(member_id="nobody", generation_id=9) == UNKNOWN_MEMBER
    assert error_of(group_id="no-such-group") == UNKNOWN_MEMBER
    assert error_of(group_id="") == INVALID_GROUP_ID
    assert error_of(protocol_type="connect") == INCONSISTENT_PROTOCOL
    assert error_of(protocol_name="other") == INCONSISTENT_PROTOCOL
    assert error_of(protocol_type=None) == INCONSISTENT_PROTOCOL
    assert error_of(protocol_name=None) == INCONSISTENT_PROTOCOL
    assert error_of(protocol_name="other", generation_id=9) == ILLEGAL_GENERATION
    assert leader.sync(version=4).error_code == NONE


def test_while_a_rebalance_is_prepared_a_sync_sends_back_to_join(rebalancing: Member) -> None:
    answer = rebalancing.sync()

    assert (answer.error_code, answer.assignment) == (REBALANCE_IN_PROGRESS, b"")
    assert (answer.protocol_type, answer.protocol_name) == (None, None)


def test_a_waiting_sync_is_sent_back_when_a_rebalance_begins(new_member: NewMember) -> None:
    leader, follower, newcomer = new_member(), new_member(), new_member()
    form([leader, follower])
    follower.send_sync()
    assert newcomer.join().error_code == MEMBER_ID_REQUIRED
    newcomer.send_join()

    answer = follower.receive()

    assert (answer.error_code, answer.assignment) == (REBALANCE_IN_PROGRESS, b"")


def test_without_a_sync_of_the_leader_the_group_goes_back_to_joining(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    # Time passes by itself here: nothing shows that the follower's sync has come in.
    leader = new_member(rebalance_timeout=SHORT_SESSION_MS)
    follower = new_member(rebalance_timeout=SHORT_SESSION_MS)
    form([leader, follower])
    follower.send_sync()

    answer = follower.receive()

    assert answer.error_code == REBALANCE_IN_PROGRESS
    assert leader.heartbeat() == UNKNOWN_MEMBER
    assert follower.heartbeat() == REBALANCE_IN_PROGRESS
    assert state_of(wire, group_id) == "PreparingRebalance"


@pytest.mark.parametrize("version", versions_of(HEARTBEAT))
def test_a_member_of_a_stable_group_may_beat_in_every_version(
    new_member: NewMember, version: int
) -> None:
    member = new_member()
    settle([member])

    assert member.heartbeat(version=version) == NONE
    assert member.heartbeat(version=version, generation_id=7) == ILLEGAL_GENERATION
    assert member.heartbeat(version=version, member_id="nobody") == UNKNOWN_MEMBER


def test_a_heartbeat_is_answered_by_the_state_of_the_group(new_member: NewMember) -> None:
    member, newcomer = new_member(), new_member()
    assert newcomer.join().error_code == MEMBER_ID_REQUIRED
    pending = newcomer.heartbeat()
    member.enter()
    completing = member.heartbeat()

    assert pending == UNKNOWN_MEMBER
    assert completing == NONE


def test_while_a_rebalance_is_prepared_a_heartbeat_says_so(rebalancing: Member) -> None:
    assert rebalancing.heartbeat() == REBALANCE_IN_PROGRESS
    assert rebalancing.heartbeat(generation_id=9) == ILLEGAL_GENERATION
    assert rebalancing.heartbeat(member_id="nobody") == UNKNOWN_MEMBER


def test_heartbeats_of_unknown_groups_and_members_are_refused(new_member: NewMember) -> None:
    stranger = new_member()

    assert stranger.heartbeat(member_id="nobody") == UNKNOWN_MEMBER
    assert stranger.heartbeat(group_id="") == INVALID_GROUP_ID
    assert stranger.heartbeat(group_id="no-such-group", member_id="nobody") == UNKNOWN_MEMBER
    assert stranger.heartbeat(member_id="") == UNKNOWN_MEMBER


def test_who_is_silent_longer_than_its_session_is_removed(
    engine: Engine, new_member: NewMember
) -> None:
    silent, lively = new_member(session_timeout=SHORT_SESSION_MS), new_member()
    settle([lively, silent])

    engine.pass_time(SHORT_SESSION_MS / 1000)
    lively.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
    answer = lively.join()

    assert [told.member_id for told in answer.members] == [lively.member_id]
    assert silent.heartbeat() == UNKNOWN_MEMBER


def test_a_group_whose_members_are_all_silent_becomes_empty(
    engine: Engine, wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member = new_member(session_timeout=SHORT_SESSION_MS)
    settle([member])

    engine.pass_time(SHORT_SESSION_MS / 1000)
    wait_for(lambda: state_of(wire, group_id) == "Empty")

    assert member.heartbeat() == UNKNOWN_MEMBER
    newcomer = new_member()
    # Generations go on: 1 was the member's, 2 began when it had gone.
    assert newcomer.enter().generation_id == 3


def test_heartbeats_keep_a_member_beyond_its_session(engine: Engine, new_member: NewMember) -> None:
    member = new_member(session_timeout=SHORT_SESSION_MS)
    settle([member])

    for _ in range(5):
        engine.pass_time(SHORT_SESSION_MS / 4000)
        assert member.heartbeat() == NONE
