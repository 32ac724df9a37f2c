"""Classic members in groups of the new protocol (KIP-848), on both engines."""

import struct
from collections.abc import Callable

from tests.interop.consumer_wire import (
    LEAVE_FOR_A_WHILE,
    Consumer,
    members_of,
)
from tests.interop.group_wire import (
    ILLEGAL_GENERATION,
    INCONSISTENT_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    SHORT_SESSION_MS,
    UNKNOWN_MEMBER,
    Member,
    kind_of,
    wait_for,
)
from tests.interop.wire import Engine, WireClient

CLASSIC, CONSUMER = 0, 1
NewMember = Callable[..., Member]
NewConsumer = Callable[..., Consumer]


def test_a_classic_member_joins_a_new_group_without_waiting(
    wire: WireClient,
    classic: Callable[..., Member],
    four: str,
    group_id: str,
    new_consumer: NewConsumer,
) -> None:
    new = new_consumer("new", four).joined()
    old = classic()

    refused, answer = old.join(), old.join()

    assert refused.error_code == MEMBER_ID_REQUIRED
    assert (answer.error_code, answer.generation_id, answer.leader) == (NONE, 3, "")
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    # Ids are made as those of the new protocol are.
    assert len(answer.member_id) == 22
    assert members_of(wire, group_id)[old.member_id].member_type == CLASSIC
    assert old.sync().assignment == struct.pack(">hii", 0, 0, -1)
    assert old.heartbeat() == NONE
    new.beat()
    new.confirm()
    assert old.heartbeat() == REBALANCE_IN_PROGRESS


def test_a_classic_request_in_a_new_group_must_fit(
    classic: Callable[..., Member], new_member: NewMember, four: str, new_consumer: NewConsumer
) -> None:
    new_consumer("new", four).joined()
    old, worker = classic(), new_member(protocol_type="connect")
    old.enter()

    assert worker.join().error_code == INCONSISTENT_PROTOCOL
    assert old.heartbeat(generation_id=9) == old.heartbeat(generation_id=1) == ILLEGAL_GENERATION
    assert old.heartbeat(member_id="nobody") == old.heartbeat(member_id="new") == UNKNOWN_MEMBER
    assert old.sync(generation_id=9).error_code == ILLEGAL_GENERATION
    assert old.sync(protocol_name="other").error_code == INCONSISTENT_PROTOCOL
    assert old.sync(member_id="new").error_code == UNKNOWN_MEMBER
    assert old.commit(four, 1) == old.commit(four, 1, version=8) == NONE
    assert old.commit(four, 1, generation_id_or_member_epoch=9) == ILLEGAL_GENERATION


def test_a_classic_member_goes_over_with_a_heartbeat_of_the_new_kind(
    wire: WireClient,
    classic: Callable[..., Member],
    four: str,
    group_id: str,
    new_consumer: NewConsumer,
) -> None:
    new_consumer("new", four).joined()
    old = classic()
    old.enter()
    successor = new_consumer(old.member_id, four)

    answer = successor.beat(member_epoch=old.generation_id)

    assert answer.error_code == NONE
    assert members_of(wire, group_id)[old.member_id].member_type == CONSUMER


def test_a_classic_member_that_is_silent_is_removed(
    engine: Engine,
    wire: WireClient,
    classic: Callable[..., Member],
    four: str,
    group_id: str,
    new_consumer: NewConsumer,
) -> None:
    new_consumer("new", four, instance_id="mine").joined()
    silent = classic(session_timeout=SHORT_SESSION_MS)
    silent.enter()

    engine.pass_time(SHORT_SESSION_MS / 1000)
    wait_for(lambda: set(members_of(wire, group_id)) == {"new"})

    assert silent.heartbeat() == UNKNOWN_MEMBER


def test_a_classic_member_that_does_not_join_again_in_time_is_removed(
    engine: Engine,
    wire: WireClient,
    classic: Callable[..., Member],
    four: str,
    group_id: str,
    new_consumer: NewConsumer,
) -> None:
    new = new_consumer("new", four).joined()
    slow = classic(rebalance_timeout=SHORT_SESSION_MS)
    slow.enter()
    slow.sync()
    new.beat()
    new.confirm()
    assert slow.heartbeat() == REBALANCE_IN_PROGRESS

    engine.pass_time(SHORT_SESSION_MS / 1000)
    wait_for(lambda: set(members_of(wire, group_id)) == {"new"})

    assert slow.heartbeat() == UNKNOWN_MEMBER


def test_a_paused_instance_may_come_back_as_a_classic_member(
    wire: WireClient,
    classic: Callable[..., Member],
    four: str,
    group_id: str,
    new_consumer: NewConsumer,
) -> None:
    new_consumer("new", four, instance_id="mine").joined().leave(LEAVE_FOR_A_WHILE)
    old = classic(instance_id="mine")

    answer = old.join()

    assert (answer.error_code, answer.generation_id) == (NONE, 2)
    assert kind_of(wire, group_id) == "classic"
