"""Groups that change their kind, classic to new and back (KIP-848), on both engines."""

import struct
from collections.abc import Callable

import pytest
from tests.interop.consumer_wire import (
    Consumer,
    by_name,
    described,
    members_of,
)
from tests.interop.group_wire import (
    FENCED_INSTANCE,
    GROUP_ID_NOT_FOUND,
    LEAVE_GROUP,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER,
    Member,
    ask,
    form,
    kind_of,
    settle,
    state_of,
)
from tests.interop.wire import WireClient

CLASSIC, CONSUMER = 0, 1
NewMember = Callable[..., Member]
NewConsumer = Callable[..., Consumer]


def share(topic: str, *partitions: int) -> bytes:
    """v0 of Kafka's ConsumerProtocolAssignment, of one topic and without user data."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return struct.pack(">hi", 0, 1) + name + numbers + struct.pack(">i", -1)


@pytest.fixture
def owner(classic: Callable[..., Member], four: str) -> Member:
    """The only member of a stable classic group: it has all four partitions."""
    return own_all(classic(), four)


def own_all(member: Member, topic: str) -> Member:
    form([member])
    assert member.sync({member.member_id: share(topic, 0, 1, 2, 3)}).error_code == NONE
    return member


def test_a_new_member_brings_a_classic_group_over(
    wire: WireClient, owner: Member, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    new = new_consumer("new", four).joined()

    group = described(wire, group_id)
    old, told = members_of(wire, group_id)[owner.member_id], members_of(wire, group_id)["new"]
    # Generation 1 has become epoch 1, and the newcomer brought 2.
    assert (group.group_state, group.group_epoch, new.member_epoch) == ("Reconciling", 2, 2)
    assert (old.member_type, old.member_epoch) == (CLASSIC, 1)
    assert by_name(old.assignment) == {four: [0, 1, 2, 3]}
    assert sorted(by_name(old.target_assignment)[four] + by_name(told.target_assignment)[four]) == [
        0,
        1,
        2,
        3,
    ]
    assert (told.member_type, new.assignment) == (CONSUMER, {})


def test_a_classic_member_lets_go_by_joining_again(
    wire: WireClient, owner: Member, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    new = new_consumer("new", four).joined()
    kept = by_name(members_of(wire, group_id)[owner.member_id].target_assignment)[four]

    told = owner.heartbeat()
    answer = owner.join()
    before_sync, synced = owner.heartbeat(), owner.sync()
    new.beat()

    assert told == REBALANCE_IN_PROGRESS
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (NONE, 2, "range")
    assert (answer.leader, answer.members, answer.skip_assignment) == ("", (), False)
    assert before_sync == NONE
    assert synced.assignment == share(four, *kept)
    assert new.assignment == {wire.topic_id(four): sorted({0, 1, 2, 3} - set(kept))}
    assert described(wire, group_id).group_state == "Stable"


def test_when_the_last_new_member_leaves_the_group_is_classic_again(
    wire: WireClient, owner: Member, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    new = new_consumer("new", four).joined()
    owner.join()

    new.leave()

    assert described(wire, group_id).error_code == GROUP_ID_NOT_FOUND
    assert kind_of(wire, group_id) == "classic"
    assert state_of(wire, group_id) == "PreparingRebalance"
    assert owner.heartbeat() == REBALANCE_IN_PROGRESS
    answer = owner.join()
    assert (answer.generation_id, answer.leader) == (3, owner.member_id)
    assert len(answer.members) == 1


def test_when_the_last_classic_member_leaves_the_new_ones_stay(
    wire: WireClient, owner: Member, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    new = new_consumer("new", four).joined()

    answer = owner.leave()
    new.beat()

    assert answer.members[0].error_code == NONE
    assert (new.member_epoch, new.assignment) == (3, {wire.topic_id(four): [0, 1, 2, 3]})
    assert kind_of(wire, group_id) == "consumer"


def test_those_who_wait_are_sent_back_when_their_group_changes_its_kind(
    classic: Callable[..., Member], four: str, new_consumer: NewConsumer
) -> None:
    leader, follower = classic(), classic()
    form([leader, follower])
    follower.send_sync()
    leader.heartbeat()

    assert new_consumer("new", four).join().member_epoch == 3

    assert follower.receive().error_code == REBALANCE_IN_PROGRESS
    assert leader.heartbeat() == REBALANCE_IN_PROGRESS
    assert leader.sync({}).error_code == REBALANCE_IN_PROGRESS
    assert leader.join().generation_id == 3


def test_a_waiting_join_is_sent_back_too(
    owner: Member, classic: Callable[..., Member], four: str, new_consumer: NewConsumer
) -> None:
    waiting = classic()
    assert waiting.join().error_code == MEMBER_ID_REQUIRED
    waiting.send_join()
    owner.wait_for_heartbeat(REBALANCE_IN_PROGRESS)

    new_consumer("new", four).joined()
    answer = waiting.receive()

    assert (answer.error_code, answer.generation_id) == (REBALANCE_IN_PROGRESS, -1)
    assert answer.member_id == waiting.member_id


def test_an_instance_is_brought_over_with_its_partitions(
    wire: WireClient,
    classic: Callable[..., Member],
    four: str,
    group_id: str,
    new_consumer: NewConsumer,
) -> None:
    old = own_all(classic(instance_id="mine"), four)

    new = new_consumer("new", four, instance_id="mine").joined()

    assert (new.member_epoch, new.assignment) == (1, {wire.topic_id(four): [0, 1, 2, 3]})
    assert old.heartbeat() == FENCED_INSTANCE
    assert old.heartbeat(group_instance_id=None) == UNKNOWN_MEMBER


def test_a_group_of_another_kind_of_clients_stays_as_it_is(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str, new_consumer: NewConsumer
) -> None:
    worker = new_member(protocol_type="connect")
    settle([worker])

    answer = new_consumer("new", topic).join()

    assert (answer.error_code, answer.error_message) == (
        GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because the group does not "
        "use the consumer embedded protocol.",
    )
    assert worker.heartbeat() == NONE


def test_an_empty_group_takes_the_kind_of_its_next_member(
    wire: WireClient,
    classic: Callable[..., Member],
    four: str,
    group_id: str,
    new_consumer: NewConsumer,
) -> None:
    old = own_all(classic(), four)
    old.leave()
    new = new_consumer("new", four).joined()
    as_consumer = kind_of(wire, group_id)
    new.leave()
    answer = classic().enter()

    assert (new.assignment, as_consumer) == ({wire.topic_id(four): [0, 1, 2, 3]}, "consumer")
    assert (answer.generation_id, answer.leader) == (1, answer.member_id)
    assert kind_of(wire, group_id) == "classic"


def test_a_new_member_may_be_sent_away_by_leave_group(
    wire: WireClient, owner: Member, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    new_consumer("new", four).joined()
    leaving = [{"member_id": "new", "group_instance_id": None}]

    answer = ask(wire, LEAVE_GROUP, 5, group_id=group_id, members=leaving)

    assert answer.members[0].error_code == NONE
    assert kind_of(wire, group_id) == "classic"
