"""How groups of the new protocol share partitions out (KIP-848), on both engines."""

from collections.abc import Callable

import pytest
from tests.interop.consumer_wire import Consumer, by_name, configure_group, described
from tests.interop.group_wire import (
    CONSUMER_GROUP_DESCRIBE,
    FENCED_EPOCH,
    GROUP_ID_NOT_FOUND,
    NONE,
    SHORT_SESSION_MS,
    UNKNOWN_MEMBER,
    settle,
    versions_of,
    wait_for,
)
from tests.interop.wire import CREATE_PARTITIONS, DELETE_TOPICS, Engine, WireClient

NewConsumer = Callable[..., Consumer]
NewTopic = Callable[..., str]


def epochs(wire: WireClient, group_id: str) -> tuple[str, int, int]:
    group = described(wire, group_id)
    return group.group_state, group.group_epoch, group.assignment_epoch


def test_a_partition_is_handed_on_only_when_its_owner_has_let_go(
    wire: WireClient, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    four_id = wire.topic_id(four)
    one, two = new_consumer("one", four).joined(), new_consumer("two", four)
    all_of_it = one.assignment

    waiting = two.join()
    early = two.beat()
    asked_to_revoke = one.beat()
    still_revoking = one.beat()
    revoked = one.confirm()
    at_last = two.beat()

    assert all_of_it == {four_id: [0, 1, 2, 3]}
    assert (waiting.member_epoch, waiting.assignment.topic_partitions) == (3, ())
    assert early.assignment is None
    # Until it confirms, the first member stays at its old epoch.
    assert (asked_to_revoke.member_epoch, one.assignment) == (2, {four_id: [0, 1]})
    assert (still_revoking.member_epoch, still_revoking.assignment) == (2, None)
    assert (revoked.member_epoch, revoked.assignment) == (3, None)
    assert (at_last.member_epoch, two.assignment) == (3, {four_id: [2, 3]})
    assert epochs(wire, group_id) == ("Stable", 3, 3)


def test_a_heartbeat_with_the_epoch_before_is_taken_for_a_lost_answer(
    four: str, new_consumer: NewConsumer
) -> None:
    one = new_consumer("one", four).joined()
    new_consumer("two", four).joined()
    one.beat()
    owned = [{"topic_id": at, "partitions": parts} for at, parts in one.assignment.items()]
    one.confirm()

    again = one.beat(member_epoch=2, topic_partitions=owned)
    elsewhere = one.beat(member_epoch=2, topic_partitions=None)

    assert (again.error_code, again.member_epoch) == (NONE, 3)
    assert elsewhere.error_code == FENCED_EPOCH


def test_a_new_assignment_may_have_to_wait_for_the_interval(
    engine: Engine, wire: WireClient, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    one, two = new_consumer("one", four), new_consumer("two", four)
    configure_group(
        wire,
        group_id,
        consumer_assignment_interval_ms=SHORT_SESSION_MS,
        consumer_heartbeat_interval_ms=20,
    )
    wait_for(lambda: one.join().heartbeat_interval.total_seconds() == 0.02)
    one.leave()
    engine.pass_time(SHORT_SESSION_MS / 1000)
    wait_for(lambda: one.join().member_epoch == described(wire, group_id).group_epoch)
    epoch = one.member_epoch

    two.join()
    early = epochs(wire, group_id)
    unaware = one.beat()

    assert two.member_epoch == epoch
    assert early == ("Assigning", epoch + 1, epoch)
    assert (unaware.member_epoch, unaware.assignment) == (epoch, None)
    engine.pass_time(SHORT_SESSION_MS / 1000)
    wait_for(lambda: two.beat().member_epoch == epoch + 1)
    assert one.beat().assignment is not None


def test_a_leaving_member_leaves_its_partitions_to_the_others(
    wire: WireClient, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    one, two = new_consumer("one", four).joined(), new_consumer("two", four).joined()
    one.beat(), one.confirm(), two.beat(), two.confirm()

    one.leave()
    state = epochs(wire, group_id)
    two.beat()

    assert state == ("Assigning", 4, 3)
    assert (two.member_epoch, two.assignment) == (4, {wire.topic_id(four): [0, 1, 2, 3]})


def test_a_group_without_members_is_empty_and_counts_on(
    wire: WireClient, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    new_consumer("one", four).joined().leave()

    state = epochs(wire, group_id)
    again = new_consumer("one", four).joined()

    assert state == ("Empty", 3, 2)
    assert again.member_epoch == 4


def test_who_is_silent_longer_than_the_session_is_fenced(
    wire: WireClient, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    configure_group(
        wire, group_id, consumer_session_timeout_ms=100, consumer_heartbeat_interval_ms=20
    )
    one = new_consumer("one", four)
    wait_for(lambda: one.join().heartbeat_interval.total_seconds() == 0.02)

    wait_for(lambda: epochs(wire, group_id)[0] == "Empty")

    answer = one.beat()
    assert answer.error_code == UNKNOWN_MEMBER
    assert answer.error_message == f"Member one is not a member of group {group_id}."


def test_who_does_not_let_go_within_its_rebalance_time_out_is_fenced(
    wire: WireClient, four: str, group_id: str, new_consumer: NewConsumer
) -> None:
    slow = new_consumer("slow", four, rebalance_timeout=100).joined()
    quick = new_consumer("quick", four).joined()
    slow.beat()

    wait_for(lambda: len(described(wire, group_id).members) == 1)

    quick.beat()
    assert quick.assignment == {wire.topic_id(four): [0, 1, 2, 3]}
    assert slow.beat().error_code == UNKNOWN_MEMBER


def test_a_new_subscription_changes_the_assignment(
    wire: WireClient, four: str, topic: str, new_consumer: NewConsumer
) -> None:
    one = new_consumer("one", four).joined()

    both = one.beat(subscribed_topic_names=[four, topic])
    other = one.beat(subscribed_topic_names=[topic])

    assert both.member_epoch == 3
    assert {part.topic_id for part in both.assignment.topic_partitions} == {
        wire.topic_id(four),
        wire.topic_id(topic),
    }
    # Four partitions are to be let go before the next epoch.
    assert (other.member_epoch, one.assignment) == (3, {wire.topic_id(topic): [0]})
    assert one.confirm().member_epoch == 4


def test_topics_that_come_and_grow_are_noticed_at_the_next_heartbeat(
    wire: WireClient, new_topic: NewTopic, new_consumer: NewConsumer
) -> None:
    growing = new_topic()
    one = new_consumer("one", growing).joined()
    topics = [{"name": growing, "count": 3, "assignments": None}]

    answer = wire.call(CREATE_PARTITIONS, 3, topics=topics, timeout=10_000, validate_only=False)

    assert answer.results[0].error_code == NONE
    wait_for(lambda: one.beat().assignment is not None)
    assert (one.member_epoch, one.assignment) == (3, {wire.topic_id(growing): [0, 1, 2]})


def test_a_deleted_topic_is_taken_away(
    wire: WireClient, new_topic: NewTopic, new_consumer: NewConsumer
) -> None:
    passing = new_topic()
    one = new_consumer("one", passing).joined()

    topics = [{"name": passing, "topic_id": None}]
    wire.call(DELETE_TOPICS, 6, topics=topics, timeout=10_000)

    wait_for(lambda: one.beat().assignment is not None)
    assert one.assignment == {}
    assert one.confirm().member_epoch == 3


@pytest.mark.parametrize(("assignor", "shares"), [("range", [2, 4]), ("uniform", [3, 3])])
def test_the_assignor_that_members_want_shares_out(
    wire: WireClient,
    new_topic: NewTopic,
    group_id: str,
    new_consumer: NewConsumer,
    assignor: str,
    shares: list[int],
) -> None:
    topics = [new_topic(partitions=3), new_topic(partitions=3)]
    new_consumer("first", *topics, server_assignor=assignor).joined()
    new_consumer("second", *topics, server_assignor=assignor).joined()

    # "range" gives the odd partition of each topic to the same member.
    group = described(wire, group_id)

    targets = [by_name(member.target_assignment) for member in group.members]
    assert group.assignor_name == assignor
    assert sorted(sum(map(len, target.values())) for target in targets) == shares


@pytest.mark.parametrize("version", versions_of(CONSUMER_GROUP_DESCRIBE))
def test_a_group_is_described_in_every_version(
    wire: WireClient, four: str, group_id: str, new_consumer: NewConsumer, version: int
) -> None:
    new_consumer("one", four, instance_id="i", rack_id="r").joined()

    group = described(wire, group_id, version=version, include_authorized_operations=True)

    assert (group.error_code, group.error_message) == (NONE, None)
    assert (group.group_id, group.group_state) == (group_id, "Stable")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    assert (group.assignor_name, group.authorized_operations) == ("uniform", 3400)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("one", "i", "r")
    assert (member.client_id, member.client_host) == ("interop", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ((four,), "")
    assert by_name(member.assignment) == by_name(member.target_assignment) == {four: [0, 1, 2, 3]}
    assert member.member_epoch == 2
    if version >= 1:
        assert member.member_type == 1


def test_groups_that_are_not_there_or_classic_are_not_described(
    wire: WireClient, group_id: str, new_member: Callable[..., object]
) -> None:
    missing = described(wire, "no-such-group")
    settle([new_member()])  # type: ignore[list-item]
    classic = described(wire, group_id)

    assert missing.error_code == classic.error_code == GROUP_ID_NOT_FOUND
    assert missing.error_message == "Group no-such-group not found."
    assert classic.error_message == f"Group {group_id} is not a consumer group."
    assert (missing.group_state, missing.assignor_name, missing.members) == ("", "", ())
    assert (missing.group_epoch, missing.assignment_epoch) == (0, 0)
