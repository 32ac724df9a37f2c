"""What ConsumerGroupHeartbeat refuses, word by word, and what it answers, on both engines."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from tests.interop.consumer_wire import LEAVE, LEAVE_FOR_A_WHILE, Consumer, configure_group
from tests.interop.group_wire import (
    CONSUMER_GROUP_HEARTBEAT,
    FENCED_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_MEMBER,
    UNSUPPORTED_ASSIGNOR,
    versions_of,
    wait_for,
)
from tests.interop.wire import WireClient

INVALID_REGEX = 128


@pytest.fixture
def member(new_consumer: Callable[..., Consumer], topic: str) -> Consumer:
    """One that has not joined yet."""
    return new_consumer("member", topic)


@pytest.mark.parametrize("version", versions_of(CONSUMER_GROUP_HEARTBEAT))
def test_the_first_member_gets_everything_at_once(
    wire: WireClient, topic: str, member: Consumer, version: int
) -> None:
    answer = member.join(version=version)

    assert (answer.error_code, answer.error_message) == (NONE, None)
    # A group starts at epoch 1: its first member brings it to 2.
    assert (answer.member_id, answer.member_epoch) == ("member", 2)
    assert answer.heartbeat_interval.total_seconds() == 5
    (given,) = answer.assignment.topic_partitions
    assert (given.topic_id, given.partitions) == (wire.topic_id(topic), (0,))


def test_in_v0_the_broker_makes_the_id(member: Consumer) -> None:
    answer = member.join(version=0, member_id="")

    assert answer.error_code == NONE
    assert len(answer.member_id) == 22


EITHER = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
NO_PARTITIONS = "TopicPartitions must be empty when (re-)joining."
ASSIGNORS = "is not supported. Supported assignors: uniform, range."
REFUSED_JOINS: dict[str, tuple[dict[str, Any], int, str]] = {
    "no group": ({"group_id": ""}, INVALID_REQUEST, "GroupId can't be empty."),
    "blank group": ({"group_id": " "}, INVALID_REQUEST, "GroupId can't be empty."),
    "no id": ({"member_id": ""}, INVALID_REQUEST, "MemberId can't be empty."),
    "blank id": ({"member_id": " "}, INVALID_REQUEST, "MemberId can't be empty."),
    "no id, leaving": (
        {"member_id": "", "member_epoch": LEAVE, "version": 0},
        INVALID_REQUEST,
        "MemberId can't be empty.",
    ),
    "epoch -3": ({"member_epoch": -3}, INVALID_REQUEST, "MemberEpoch is invalid."),
    "empty instance": ({"instance_id": ""}, INVALID_REQUEST, "InstanceId can't be empty."),
    "empty rack": ({"rack_id": ""}, INVALID_REQUEST, "RackId can't be empty."),
    "no rebalance time-out": (
        {"rebalance_timeout": -1},
        INVALID_REQUEST,
        "RebalanceTimeoutMs must be provided in first request.",
    ),
    "no topics": ({"subscribed_topic_names": None}, INVALID_REQUEST, EITHER),
    "no topics in v0": ({"subscribed_topic_names": None, "version": 0}, INVALID_REQUEST, EITHER),
    "owned null": ({"topic_partitions": None}, INVALID_REQUEST, NO_PARTITIONS),
    "owned": (
        {"topic_partitions": [{"topic_id": uuid4(), "partitions": [0]}]},
        INVALID_REQUEST,
        NO_PARTITIONS,
    ),
    "assignor": ({"server_assignor": "no"}, UNSUPPORTED_ASSIGNOR, f"ServerAssignor no {ASSIGNORS}"),
    "empty assignor": (
        {"server_assignor": ""},
        UNSUPPORTED_ASSIGNOR,
        f"ServerAssignor  {ASSIGNORS}",
    ),
    "dynamic leaving for a while": (
        {"member_epoch": LEAVE_FOR_A_WHILE},
        INVALID_REQUEST,
        "InstanceId can't be null.",
    ),
}


@pytest.mark.parametrize("case", REFUSED_JOINS)
def test_a_join_that_is_not_whole_is_refused_with_the_reason(member: Consumer, case: str) -> None:
    fields, code, message = REFUSED_JOINS[case]

    answer = member.join(**fields)

    assert (answer.error_code, answer.error_message) == (code, message)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
    assert answer.heartbeat_interval.total_seconds() == 0


@pytest.mark.parametrize(
    ("regex", "fault"),
    [
        ("(", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("[z-a]", "invalid character class range"),
        ("a\\", "trailing backslash at end of expression"),
        ("\\8", "invalid escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<n", "invalid named capture"),
    ],
)
def test_a_regular_expression_that_is_none_is_refused_with_its_fault(
    member: Consumer, regex: str, fault: str
) -> None:
    answer = member.join(subscribed_topic_regex=regex)

    assert (answer.error_code, answer.error_message) == (
        INVALID_REGEX,
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {fault}.",
    )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"rebalance_timeout": 0}, id="no time to rebalance"),
        pytest.param({"subscribed_topic_names": []}, id="no topics"),
        pytest.param({"subscribed_topic_names": [""]}, id="a topic without a name"),
        pytest.param({"subscribed_topic_names": ["bad name!"]}, id="an impossible name"),
        pytest.param({"subscribed_topic_names": None, "subscribed_topic_regex": ""}, id="no regex"),
        pytest.param({"member_id": "x" * 100}, id="a long id"),
        pytest.param({"server_assignor": "range"}, id="the other assignor"),
        pytest.param({"rack_id": "r1"}, id="a rack"),
    ],
)
def test_a_join_may_ask_for_little(member: Consumer, fields: dict[str, Any]) -> None:
    assert member.join(**fields).error_code == NONE


def test_strangers_are_told_who_they_are_not(member: Consumer, group_id: str) -> None:
    member.joined()

    stranger = member.beat(member_id="x", member_epoch=1)
    leaving = member.beat(member_id="x", member_epoch=LEAVE)
    instance = member.beat(member_id="x", member_epoch=5, instance_id="i")
    paused = member.beat(member_id="x", member_epoch=LEAVE_FOR_A_WHILE, instance_id="i")

    not_here = f"Member x is not a member of group {group_id}."
    assert (stranger.error_code, stranger.error_message) == (UNKNOWN_MEMBER, not_here)
    assert (leaving.error_code, leaving.error_message) == (UNKNOWN_MEMBER, not_here)
    assert (instance.error_code, instance.error_message) == (
        UNKNOWN_MEMBER,
        "Instance id i is unknown.",
    )
    assert paused.error_message == "Instance id i is unknown."


@pytest.mark.parametrize(("epoch", "kind"), [(1, "Consumer group"), (LEAVE, "Group")])
def test_a_group_that_is_not_there_is_told_by_name(
    member: Consumer, group_id: str, epoch: int, kind: str
) -> None:
    answer = member.beat(member_epoch=epoch)

    assert answer.error_code == GROUP_ID_NOT_FOUND
    assert answer.error_message == f"{kind} {group_id} not found."


def test_a_member_with_a_wrong_epoch_is_fenced(member: Consumer) -> None:
    member.joined()

    smaller, greater = member.beat(member_epoch=1), member.beat(member_epoch=3)

    assert smaller.error_code == greater.error_code == FENCED_EPOCH
    assert smaller.error_message == (
        "The consumer group member has a smaller member epoch (1) than the one known by the "
        "group coordinator (2). The member must abandon all its partitions and rejoin."
    )
    assert greater.error_message == (
        "The consumer group member has a greater member epoch (3) than the one known by the "
        "group coordinator (2). The member must abandon all its partitions and rejoin."
    )
    assert member.beat().error_code == NONE


def test_a_member_may_join_again_and_is_told_everything_again(member: Consumer) -> None:
    member.joined()
    given = member.assignment

    answer = member.join()

    assert (answer.error_code, answer.member_epoch) == (NONE, 2)
    assert member.assignment == given
    assert answer.assignment is not None


def test_the_assignment_is_told_only_when_it_is_news(member: Consumer) -> None:
    member.joined()

    quiet, whole = member.beat(), member.confirm(subscribed_topic_names=None)

    assert quiet.assignment is None
    assert whole.assignment is None


def test_who_leaves_is_told_so(wire: WireClient, member: Consumer) -> None:
    member.joined()

    answer = member.leave()

    assert (answer.error_code, answer.member_id, answer.member_epoch) == (NONE, "member", LEAVE)
    assert (answer.assignment, answer.heartbeat_interval.total_seconds()) == (None, 0)
    assert member.beat(member_epoch=2).error_code == UNKNOWN_MEMBER


def test_the_heartbeat_interval_is_a_config_of_the_group(
    wire: WireClient, member: Consumer, group_id: str
) -> None:
    configure_group(wire, group_id, consumer_heartbeat_interval_ms=1234)

    wait_for(lambda: member.join().heartbeat_interval.total_seconds() == 1.234)


def test_a_group_has_no_more_members_than_group_consumer_max_size(
    wire: WireClient, topic: str, group_id: str
) -> None:
    for index in range(6):
        Consumer(wire, group_id, f"member-{index}", topic).joined()

    answer = Consumer(wire, group_id, "one-too-many", topic).join()

    assert answer.error_code == GROUP_MAX_SIZE
    assert answer.error_message == (
        "The consumer group has reached its maximum capacity of 6 members."
    )
