"""Static members, regular expressions and offsets of new groups (KIP-848), on both engines."""

from collections.abc import Callable
from uuid import uuid4

from tests.interop.consumer_wire import (
    LEAVE_FOR_A_WHILE,
    Consumer,
    by_name,
    configure_group,
    described,
)
from tests.interop.group_wire import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FENCED_INSTANCE,
    GROUP_ID_NOT_FOUND,
    LIST_GROUPS,
    NON_EMPTY_GROUP,
    NONE,
    STALE_EPOCH,
    UNKNOWN_MEMBER,
    UNRELEASED_INSTANCE,
    ask,
    wait_for,
)
from tests.interop.wire import WireClient

UNSUPPORTED_VERSION = 35
NewConsumer = Callable[..., Consumer]


def test_an_instance_that_pauses_gets_its_partitions_back(
    wire: WireClient, topic: str, group_id: str, new_consumer: NewConsumer
) -> None:
    old = new_consumer("old", topic, instance_id="mine").joined()

    paused = old.leave(LEAVE_FOR_A_WHILE)
    meanwhile = described(wire, group_id)
    other = new_consumer("other", topic).joined()
    new = new_consumer("new", topic, instance_id="mine")
    answer = new.join()

    assert (paused.error_code, paused.member_epoch) == (NONE, LEAVE_FOR_A_WHILE)
    assert (meanwhile.group_state, meanwhile.members[0].member_epoch) == ("Reconciling", -2)
    assert other.assignment == {}
    assert (answer.error_code, answer.member_epoch) == (NONE, 3)
    assert new.assignment == {wire.topic_id(topic): [0]}


def test_the_old_id_of_an_instance_is_fenced(topic: str, new_consumer: NewConsumer) -> None:
    old = new_consumer("old", topic, instance_id="mine").joined()
    old.leave(LEAVE_FOR_A_WHILE)
    new_consumer("new", topic, instance_id="mine").joined()

    answer = old.beat(member_epoch=2)

    assert (answer.error_code, answer.error_message) == (
        FENCED_INSTANCE,
        "Static member old with instance id mine was fenced by member new.",
    )


def test_an_instance_that_has_not_left_cannot_be_replaced(
    topic: str, new_consumer: NewConsumer
) -> None:
    old = new_consumer("old", topic, instance_id="mine").joined()

    answer = new_consumer("new", topic, instance_id="mine").join()

    assert (answer.error_code, answer.error_message) == (
        UNRELEASED_INSTANCE,
        "Static member new with instance id mine cannot join the group because the instance id "
        "is owned by old member.",
    )
    assert old.beat().error_code == old.beat(instance_id=None).error_code == NONE


def test_an_instance_that_does_not_come_back_in_time_is_removed(
    wire: WireClient, topic: str, group_id: str, new_consumer: NewConsumer
) -> None:
    configure_group(
        wire, group_id, consumer_session_timeout_ms=100, consumer_heartbeat_interval_ms=20
    )
    old = new_consumer("old", topic, instance_id="mine")
    wait_for(lambda: old.join().heartbeat_interval.total_seconds() == 0.02)
    old.leave(LEAVE_FOR_A_WHILE)

    wait_for(lambda: described(wire, group_id).group_state == "Empty")


def test_an_instance_that_leaves_for_good_is_gone(
    wire: WireClient, topic: str, group_id: str, new_consumer: NewConsumer
) -> None:
    new_consumer("old", topic, instance_id="mine").joined().leave()

    assert described(wire, group_id).group_state == "Empty"


def test_a_regular_expression_subscribes_to_what_it_matches(
    wire: WireClient, new_consumer: NewConsumer, group_id: str
) -> None:
    prefix = f"rx-{uuid4()}"
    for suffix in ("-a", "-b"):
        assert wire.create_topic(prefix + suffix).error_code == 0
    wait_for(lambda: wire.list_offset(f"{prefix}-b", -1).error_code == 0)
    member = new_consumer("one", subscribed_topic_regex=f"{prefix}-.", subscribed_topic_names=None)

    # Kafka looks the names up in the background: the first answer may be empty.
    first = member.join()
    wait_for(lambda: bool(member.assignment) or member.beat().error_code != NONE)

    assert first.error_code == NONE
    (told,) = described(wire, group_id).members
    assert (told.subscribed_topic_names, told.subscribed_topic_regex) == ((), f"{prefix}-.")
    assert by_name(told.target_assignment) == {f"{prefix}-a": [0], f"{prefix}-b": [0]}


def test_a_regular_expression_must_match_the_whole_name(
    wire: WireClient, new_consumer: NewConsumer, group_id: str
) -> None:
    prefix = f"rx-{uuid4()}"
    for suffix in ("", "-longer"):
        assert wire.create_topic(prefix + suffix).error_code == 0
    wait_for(lambda: wire.list_offset(f"{prefix}-longer", -1).error_code == 0)
    member = new_consumer("one", subscribed_topic_regex=prefix, subscribed_topic_names=None)

    member.join()
    wait_for(lambda: bool(member.assignment) or member.beat().error_code != NONE)

    assert member.assignment == {wire.topic_id(prefix): [0]}


def test_names_and_a_regular_expression_add_up(
    wire: WireClient, topic: str, new_consumer: NewConsumer
) -> None:
    other = f"rx-{uuid4()}"
    assert wire.create_topic(other).error_code == 0
    wait_for(lambda: wire.list_offset(other, -1).error_code == 0)
    member = new_consumer("one", topic, subscribed_topic_regex=other)

    member.join()
    wait_for(lambda: len(member.assignment) == 2 or member.beat().error_code != NONE)
    member.beat(subscribed_topic_regex="")
    wait_for(lambda: len(member.assignment) == 1 or member.beat().error_code != NONE)

    assert member.assignment == {wire.topic_id(topic): [0]}


def test_commits_carry_the_epoch_of_the_member(topic: str, new_consumer: NewConsumer) -> None:
    member = new_consumer("one", topic).joined()

    assert member.commit(topic, 1) == NONE
    assert member.commit(topic, 1, generation_id_or_member_epoch=1) == STALE_EPOCH
    assert member.commit(topic, 1, generation_id_or_member_epoch=9) == STALE_EPOCH
    assert member.commit(topic, 1, generation_id_or_member_epoch=-1) == STALE_EPOCH
    # Clients that know only older versions do not know of epochs.
    assert member.commit(topic, 1, version=8) == UNSUPPORTED_VERSION
    assert member.commit(topic, 1, member_id="nobody") == UNKNOWN_MEMBER
    assert member.commit(topic, 1, member_id="", generation_id_or_member_epoch=-1) == UNKNOWN_MEMBER


def test_anyone_commits_to_an_empty_group_without_an_epoch(
    topic: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", topic).joined()
    member.leave()

    assert member.commit(topic, 1, member_id="", generation_id_or_member_epoch=-1) == NONE
    assert member.commit(topic, 1, generation_id_or_member_epoch=2) == UNKNOWN_MEMBER


def test_fetches_of_offsets_carry_the_epoch_if_they_name_a_member(
    topic: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", topic).joined()

    assert member.fetch_error() == NONE
    assert member.fetch_error(member_id=None, member_epoch=-1) == NONE
    assert member.fetch_error(member_epoch=1) == STALE_EPOCH
    assert member.fetch_error(member_epoch=9) == STALE_EPOCH
    assert member.fetch_error(member_id="nobody") == UNKNOWN_MEMBER
    assert member.fetch_error(member_id="nobody", member_epoch=-1) == UNKNOWN_MEMBER
    assert member.fetch_error(member_id="", member_epoch=-1) == UNKNOWN_MEMBER


def test_the_classic_apis_know_of_new_groups(
    wire: WireClient, topic: str, group_id: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", topic).joined()

    groups = ask(wire, LIST_GROUPS, 5, states_filter=["stable"], types_filter=["consumer"]).groups
    fields = {"groups": [group_id], "include_authorized_operations": False}
    (new,) = ask(wire, DESCRIBE_GROUPS, 6, **fields).groups
    (old,) = ask(wire, DESCRIBE_GROUPS, 5, **fields).groups

    (listed,) = [group for group in groups if group.group_id == group_id]
    assert (listed.protocol_type, listed.group_state) == ("consumer", "Stable")
    assert (new.error_code, new.group_state) == (GROUP_ID_NOT_FOUND, "Dead")
    assert new.error_message == f"Group {group_id} is not a classic group."
    assert (old.error_code, old.group_state) == (NONE, "Dead")

    def deleted() -> int:
        return int(ask(wire, DELETE_GROUPS, 2, groups_names=[group_id]).results[0].error_code)

    assert deleted() == NON_EMPTY_GROUP
    member.leave()
    assert (deleted(), deleted()) == (NONE, GROUP_ID_NOT_FOUND)
