"""Subscriptions by regular expression (KIP-848), heartbeat by heartbeat, on both engines."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from tests.interop.consumer_wire import Consumer, by_name, described, wait_until_known
from tests.interop.group_wire import NONE, wait_for
from tests.interop.wire import WireClient

NewConsumer = Callable[..., Consumer]
OFFSETS = "__consumer_offsets"


@pytest.fixture
def prefix(wire: WireClient, group_id: str) -> str:
    """What the names of two topics begin with, `-a` and `-b`. Groups are ready by then."""
    prefix = f"rx-{uuid4()}"
    for suffix in ("-a", "-b"):
        assert wire.create_topic(prefix + suffix).error_code == NONE
        wait_until_known(wire, prefix + suffix)
    return prefix


def group_epoch(wire: WireClient, group_id: str) -> int:
    return int(described(wire, group_id).group_epoch)


def names_given(wire: WireClient, group_id: str) -> set[str]:
    """What the only member of the group has."""
    (member,) = described(wire, group_id).members
    return set(by_name(member.assignment))


def given(wire: WireClient, answer: Any) -> set[Any]:
    """The topics of an answer that brings an assignment."""
    assert answer.error_code == NONE, answer.error_message
    assert answer.assignment is not None
    return {part.topic_id for part in answer.assignment.topic_partitions}


def test_topics_by_name_are_given_first_and_those_that_match_in_the_next_epoch(
    wire: WireClient, topic: str, prefix: str, group_id: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", topic, subscribed_topic_regex=f"{prefix}-.")

    first = member.join()
    wait_for(lambda: group_epoch(wire, group_id) == 3)
    second = member.beat()

    assert (first.member_epoch, given(wire, first)) == (2, {wire.topic_id(topic)})
    assert second.member_epoch == 3
    assert names_given(wire, group_id) == {topic, f"{prefix}-a", f"{prefix}-b"}


def test_a_member_with_nothing_but_a_pattern_is_given_nothing_at_first(
    wire: WireClient, prefix: str, group_id: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", subscribed_topic_regex=f"{prefix}-.", subscribed_topic_names=None)

    first = member.join()
    wait_for(lambda: group_epoch(wire, group_id) == 2)
    second = member.beat()

    assert (first.member_epoch, given(wire, first)) == (1, set())
    assert second.member_epoch == 2
    assert names_given(wire, group_id) == {f"{prefix}-a", f"{prefix}-b"}


def test_a_pattern_matches_internal_topics(
    wire: WireClient, group_id: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", subscribed_topic_regex="__consumer_.*", subscribed_topic_names=[])

    member.join()
    wait_for(lambda: group_epoch(wire, group_id) == 2)
    member.beat()

    assert names_given(wire, group_id) == {OFFSETS}


def test_a_pattern_that_matches_nothing_changes_nothing(
    wire: WireClient, topic: str, group_id: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", subscribed_topic_regex=str(uuid4()), subscribed_topic_names=None)
    witness = Consumer(wire, f"witness-{group_id}", "w", topic, subscribed_topic_regex=topic)

    first = member.join()
    # By the time another group's pattern is resolved, ours is too.
    witness.join()
    wait_for(lambda: group_epoch(wire, witness.group_id) == 3)
    second = member.beat()

    assert (first.member_epoch, given(wire, first)) == (1, set())
    assert (second.member_epoch, second.assignment) == (1, None)
    assert group_epoch(wire, group_id) == 1


def test_a_pattern_that_the_group_has_resolved_is_served_at_once(
    wire: WireClient, prefix: str, group_id: str, new_consumer: NewConsumer
) -> None:
    one = new_consumer("one", subscribed_topic_regex=f"{prefix}-.", subscribed_topic_names=None)
    two = new_consumer("two", subscribed_topic_regex=f"{prefix}-.", subscribed_topic_names=None)
    one.join()
    wait_for(lambda: group_epoch(wire, group_id) == 2)
    one.beat()

    joined = two.join()

    assert joined.member_epoch == 3
    shares = {
        member.member_id: by_name(member.target_assignment)
        for member in described(wire, group_id).members
    }
    assert all(shares[each] for each in ("one", "two"))


def test_with_another_pattern_what_only_the_old_one_matched_is_given_up_at_once(
    wire: WireClient, topic: str, prefix: str, group_id: str, new_consumer: NewConsumer
) -> None:
    member = new_consumer("one", topic, subscribed_topic_regex=f"{prefix}-.")
    member.join()
    wait_for(lambda: group_epoch(wire, group_id) == 3)
    member.beat()
    member.confirm()

    changed = member.beat(subscribed_topic_regex=f"{prefix}-a")
    # Kafka begins to look with the heartbeat after, and then in the background.
    wait_for(lambda: member.beat().error_code == NONE and group_epoch(wire, group_id) == 4)
    wait_for(lambda: member.confirm().member_epoch == 4)

    assert (changed.member_epoch, given(wire, changed)) == (3, {wire.topic_id(topic)})
    assert names_given(wire, group_id) == {topic, f"{prefix}-a"}
