"""Static members of classic groups (KIP-345, KIP-814), on both engines."""

from collections.abc import Callable

import pytest
from tests.interop.group_wire import (
    FENCED_INSTANCE,
    INCONSISTENT_PROTOCOL,
    JOIN_GROUP,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    SHORT_SESSION_MS,
    UNKNOWN_MEMBER,
    Member,
    form,
    settle,
    state_of,
    subscription,
    versions_of,
    wait_for,
)
from tests.interop.wire import Engine, WireClient

NewMember = Callable[..., Member]


@pytest.mark.parametrize("version", versions_of(JOIN_GROUP, 5))
def test_a_static_member_gets_in_without_a_second_request(
    new_member: NewMember, version: int
) -> None:
    answer = new_member(instance_id="mine").join(version=version)

    assert answer.error_code == NONE
    assert answer.member_id.startswith("mine-")
    assert len(answer.member_id) == len("mine-") + 36
    assert answer.members[0].group_instance_id == "mine"


def test_a_follower_that_starts_anew_gets_a_new_id_and_no_rebalance(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    leader, old = new_member(), new_member(instance_id="mine")
    settle([leader, old])

    new = new_member(instance_id="mine")
    answer = new.join()

    assert (answer.error_code, answer.generation_id, answer.members) == (NONE, 2, ())
    assert answer.member_id != old.member_id
    assert (answer.leader, answer.skip_assignment) == (leader.member_id, False)
    assert new.sync().assignment == b"share of 1"
    assert leader.heartbeat() == new.heartbeat() == NONE
    assert state_of(wire, group_id) == "Stable"


def test_the_old_id_of_an_instance_is_fenced(new_member: NewMember, topic: str) -> None:
    leader, old, new = new_member(), new_member(instance_id="mine"), new_member(instance_id="mine")
    settle([leader, old])
    new.join()

    assert old.heartbeat() == FENCED_INSTANCE
    assert old.sync().error_code == FENCED_INSTANCE
    assert old.commit(topic, 1) == FENCED_INSTANCE
    refused = old.join()
    assert (refused.error_code, refused.member_id) == (FENCED_INSTANCE, old.member_id)
    assert old.heartbeat(group_instance_id=None) == UNKNOWN_MEMBER
    assert new.heartbeat() == NONE


def test_a_leader_that_starts_anew_leads_on_and_may_skip_the_assignment(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    old, follower = new_member(instance_id="mine"), new_member()
    settle([old, follower])

    new = new_member(instance_id="mine")
    answer = new.join()

    assert (answer.error_code, answer.generation_id, answer.skip_assignment) == (NONE, 2, True)
    assert answer.leader == new.member_id
    assert {told.member_id for told in answer.members} == {new.member_id, follower.member_id}
    assert new.sync().assignment == b"share of 0"
    assert follower.heartbeat() == NONE


@pytest.mark.parametrize("version", range(5, 9))
def test_before_v9_a_leader_that_starts_anew_is_told_of_its_old_self(
    new_member: NewMember, version: int
) -> None:
    old, follower = new_member(instance_id="mine"), new_member()
    settle([old, follower])

    new = new_member(instance_id="mine")
    answer = new.join(version=version)

    # So that it does not take itself for the leader: it would have to assign.
    assert (answer.error_code, answer.generation_id, answer.members) == (NONE, 2, ())
    assert answer.leader == old.member_id
    assert new.sync().assignment == b"share of 0"


def test_an_instance_that_starts_anew_with_new_wishes_does_not_disturb_the_group(
    new_member: NewMember,
) -> None:
    leader, old = new_member(), new_member(instance_id="mine")
    settle([leader, old])
    new = new_member(instance_id="mine")
    new.send_join(protocols=[{"name": "roundrobin", "metadata": subscription("other")}])
    refused = new.receive()
    new.send_join(
        protocols=[
            {"name": "roundrobin", "metadata": subscription("other")},
            {"name": "range", "metadata": subscription("other")},
        ]
    )
    answer = new.joined()

    # The group's protocol stays "range": then a new subscription alone does not disturb it.
    assert refused.error_code == INCONSISTENT_PROTOCOL
    assert (answer.error_code, answer.generation_id) == (NONE, 2)
    assert leader.heartbeat() == NONE


def test_an_instance_that_starts_anew_may_change_the_protocol_of_the_group(
    new_member: NewMember,
) -> None:
    both = [
        {"name": "range", "metadata": subscription("wished")},
        {"name": "roundrobin", "metadata": subscription("wished")},
    ]
    leader, old = new_member(protocols=both), new_member(instance_id="mine", protocols=both)
    settle([leader, old])
    new = new_member(instance_id="mine", protocols=both[1:])

    new.send_join()
    leader.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
    leader.send_join()

    answer = new.joined()
    assert (answer.generation_id, answer.protocol_name) == (3, "roundrobin")
    assert leader.joined().generation_id == 3


def test_a_waiting_join_is_fenced_when_its_instance_starts_anew(new_member: NewMember) -> None:
    leader, old, new = new_member(), new_member(instance_id="mine"), new_member(instance_id="mine")
    settle([leader])
    old.send_join()
    leader.wait_for_heartbeat(REBALANCE_IN_PROGRESS)

    new.send_join()
    fenced = old.receive()
    leader.send_join()

    assert fenced.error_code == FENCED_INSTANCE
    assert new.joined().error_code == NONE
    assert len(leader.joined().members) == 2


def test_a_waiting_sync_is_fenced_when_its_instance_starts_anew(new_member: NewMember) -> None:
    leader, old, new = new_member(), new_member(instance_id="mine"), new_member(instance_id="mine")
    form([leader, old])
    old.send_sync()
    # Proves that the sync is waiting: requests of one connection are read in order.
    wait_for(lambda: leader.heartbeat() == NONE)

    new.send_join()
    fenced = old.receive()

    assert fenced.error_code == FENCED_INSTANCE
    leader.wait_for_heartbeat(REBALANCE_IN_PROGRESS)


def test_an_instance_with_the_wrong_id_is_fenced_and_an_unknown_one_unknown(
    new_member: NewMember,
) -> None:
    member, stranger = new_member(instance_id="mine"), new_member()
    settle([member])

    assert member.heartbeat(member_id="nobody") == FENCED_INSTANCE
    assert member.heartbeat(group_instance_id="other") == UNKNOWN_MEMBER
    assert stranger.join(group_instance_id="mine", member_id="nobody").error_code == FENCED_INSTANCE
    assert stranger.join(group_instance_id="other", member_id="x").error_code == UNKNOWN_MEMBER
    assert member.heartbeat(group_instance_id=None) == NONE


def test_a_static_member_that_leaves_by_its_id_alone_goes_too(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member = new_member(instance_id="mine")
    settle([member])

    member.leave(version=2)

    assert state_of(wire, group_id) == "Empty"


def test_a_static_member_keeps_its_place_until_its_session_is_over(
    engine: Engine, wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member = new_member(instance_id="mine", session_timeout=SHORT_SESSION_MS)
    settle([member])

    engine.pass_time(SHORT_SESSION_MS / 1000)
    wait_for(lambda: state_of(wire, group_id) == "Empty")

    again = new_member(instance_id="mine")
    assert again.join().generation_id == 3


def test_a_dynamic_newcomer_beside_static_members_is_sent_back_first(
    new_member: NewMember,
) -> None:
    settle([new_member(instance_id="one")])

    assert new_member().join().error_code == MEMBER_ID_REQUIRED
