"""Joins, heartbeats and leaves of the new protocol. Replies were compared with Kafka 4.3.1's."""

import pytest
from tests.coordinators.groups.consumer.model import GROUP, Bench, Topics, durable

from headrace.coordinators.errors import FencedMemberEpochError, GroupFullError, UnknownMemberError
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import (
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    GroupSummary,
)
from headrace.coordinators.groups.records import (
    CurrentAssignment,
    TargetAssignmentEpoch,
    TargetAssignmentMember,
)


@pytest.fixture
def bench() -> Bench:
    return Bench(Topics(apples=4, pears=2))


def test_the_first_member_gets_everything_at_once(bench: Bench) -> None:
    reply = bench.join("a", "apples")

    apples = bench.topics.id("apples")
    assert reply == ConsumerHeartbeatReply("a", 2, 5_000, {apples: (0, 1, 2, 3)})
    assert bench.group.state == "Stable"


def test_a_heartbeat_without_news_writes_nothing_and_tells_nothing(bench: Bench) -> None:
    bench.join("a", "apples")
    written = len(bench.log)

    assert bench.heartbeat("a", 2) == ConsumerHeartbeatReply("a", 2, 5_000, None)
    assert len(bench.log) == written


def test_a_full_request_is_told_the_assignment_again(bench: Bench) -> None:
    assigned = bench.join("a", "apples").assignment

    reply = bench.heartbeat(
        "a", 2, topic_names=["apples"], owned=assigned, rebalance_timeout_ms=60_000
    )

    assert reply.assignment == assigned


def test_a_partition_is_handed_on_only_after_its_owner_has_said_that_it_gave_it_up(
    bench: Bench,
) -> None:
    apples = bench.topics.id("apples")
    bench.join("a", "apples")

    assert bench.join("b", "apples").assignment == {}
    asked_back = bench.heartbeat("a", 2)
    assert (asked_back.member_epoch, asked_back.assignment) == (2, {apples: (0, 1)})
    still = bench.heartbeat("a", 2, owned={apples: (0, 1, 2)})
    assert (still.member_epoch, still.assignment) == (2, None)
    assert bench.heartbeat("b", 3).assignment is None
    assert bench.group.state == "Reconciling"

    assert bench.heartbeat("a", 2, owned={apples: (0, 1)}).member_epoch == 3
    assert bench.heartbeat("b", 3).assignment == {apples: (2, 3)}
    assert bench.group.state == "Stable"


def test_a_lost_answer_can_be_asked_for_again_with_the_previous_epoch(bench: Bench) -> None:
    apples = bench.topics.id("apples")
    bench.join("a", "apples")
    bench.topics.create("plums", 1)
    moved_on = bench.heartbeat("a", 2, topic_names=["apples", "plums"])
    assert moved_on.member_epoch == 3

    again = bench.heartbeat("a", 2, owned={apples: (0, 1)})

    assert again.member_epoch == 3


def test_the_previous_epoch_with_other_partitions_is_fenced(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.topics.create("plums", 1)
    bench.heartbeat("a", 2, topic_names=["apples", "plums"])

    with pytest.raises(FencedMemberEpochError) as refusal:
        bench.heartbeat("a", 2, owned={bench.topics.id("pears"): (0,)})

    assert str(refusal.value) == (
        "The consumer group member has a smaller member epoch (2) than the one known by the "
        "group coordinator (3). The member must abandon all its partitions and rejoin."
    )


def test_an_epoch_from_the_future_is_fenced(bench: Bench) -> None:
    bench.join("a", "apples")

    with pytest.raises(FencedMemberEpochError, match=r"greater member epoch \(9\)"):
        bench.heartbeat("a", 9)


def test_a_stranger_is_unknown(bench: Bench) -> None:
    bench.join("a", "apples")

    with pytest.raises(UnknownMemberError) as refusal:
        bench.heartbeat("b", 2)

    assert str(refusal.value) == f"Member b is not a member of group {GROUP}."


def test_a_full_group_refuses_newcomers_but_not_members() -> None:
    bench = Bench(Topics(apples=4), ConsumerLimits(max_size=1))
    bench.join("a", "apples")

    with pytest.raises(GroupFullError, match="maximum capacity of 1 members"):
        bench.join("b", "apples")
    assert bench.join("a", "apples").member_epoch == 2


def test_the_broker_makes_an_id_for_a_member_of_version_0(bench: Bench) -> None:
    reply = bench.heartbeat(
        "", 0, topic_names=["apples"], owned={}, rebalance_timeout_ms=1, makes_its_id=False
    )

    assert reply.member_id == "made-1"


def test_a_leaver_hands_its_partitions_to_the_others(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.join("b", "apples")

    reply = bench.heartbeat("a", -1)

    assert reply == ConsumerHeartbeatReply("a", -1, 0, None)
    assert bench.heartbeat("b", 3).assignment == {bench.topics.id("apples"): (0, 1, 2, 3)}


def test_the_last_leaver_leaves_an_empty_group(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.heartbeat("a", -1)

    assert (bench.group.state, bench.group.epoch) == ("Empty", 3)
    assert not bench.group.is_void


def test_members_that_join_together_share_one_assignment() -> None:
    bench = Bench(Topics(apples=4), ConsumerLimits(assignment_interval_ms=1_000))
    bench.join("a", "apples")
    bench.now_ms += 999

    early = bench.join("b", "apples")
    assert (early.member_epoch, early.assignment) == (2, {})
    assert bench.group.state == "Assigning"
    bench.now_ms += 1

    assert bench.heartbeat("b", 2).member_epoch == 3


def test_the_time_between_assignments_survives_a_clock_that_is_set_back() -> None:
    bench = Bench(Topics(apples=4), ConsumerLimits(assignment_interval_ms=1_000))
    bench.join("a", "apples")
    bench.now_ms -= 100_000

    assert bench.join("b", "apples").member_epoch == 3


# -- written or not


def test_a_step_whose_records_are_lost_is_taken_again(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.topics.grow("apples", 5)
    before = durable(bench.group)
    bench.writes_fail = True
    bench.heartbeat("a", 2)
    bench.writes_fail = False
    assert durable(bench.group) == before

    assert bench.heartbeat("a", 2).member_epoch == 3


def test_the_records_of_a_join_are_kafkas_in_kafkas_order(bench: Bench) -> None:
    bench.join("a", "apples")

    assert [type(record).__name__ for record in bench.log] == [
        "ConsumerGroupMember",
        "ConsumerGroupMetadata",
        "TargetAssignmentMember",
        "TargetAssignmentEpoch",
        "CurrentAssignment",
    ]
    assert bench.log[3] == TargetAssignmentEpoch(GROUP, 2, bench.now_ms)
    apples = bench.topics.id("apples")
    assert bench.log[4] == CurrentAssignment(
        GROUP, "a", 2, 0, 0, {apples: (0, 1, 2, 3)}, {}, {apples: (2, 2, 2, 2)}, {}
    )


def test_a_group_is_the_same_after_a_restart(bench: Bench) -> None:
    bench.join("a", "apples", instance_id="one")
    bench.join("b", "apples")
    bench.heartbeat("a", 2, instance_id="one")

    bench.group = bench.replayed()

    asked = bench.heartbeat("a", 2, instance_id="one", owned={bench.topics.id("apples"): (0, 1)})
    assert asked.member_epoch == 3
    assert bench.heartbeat("b", 3).assignment == {bench.topics.id("apples"): (2, 3)}


def test_a_changed_client_is_written_down_and_changes_no_epoch(bench: Bench) -> None:
    bench.join("a", "apples")
    written = len(bench.log)

    bench.heartbeat("a", 2, client_host="/10.0.0.1")

    assert len(bench.log) == written + 1
    (member,) = bench.group.describe().members
    assert (member.client_host, bench.group.epoch) == ("/10.0.0.1", 2)


def test_quiet_heartbeats_do_not_look_at_topics(bench: Bench) -> None:
    class OnlyTheGeneration:
        generation = bench.topics.generation

    bench.join("a", "apples")
    request = ConsumerHeartbeatRequest(
        GROUP, "a", 2, None, None, -1, None, None, None, None, "client", "/127.0.0.1"
    )

    reply, outcome = bench.group.heartbeat(request, OnlyTheGeneration(), 0)  # type: ignore[arg-type]

    assert (reply.member_epoch, outcome.records) == (2, [])


def test_targets_that_stay_are_not_written_again(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.join("b", "pears")

    targets = [one.member_id for one in bench.log if isinstance(one, TargetAssignmentMember)]
    assert targets == ["a", "b"]


def test_a_description_shows_what_has_yet_to_be_given_up_as_held(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.join("b", "apples")
    bench.heartbeat("a", 2)

    held = {one.member_id: one for one in bench.group.describe().members}["a"]
    apples = bench.topics.id("apples")
    assert held.assignment == {apples: (0, 1, 2, 3)}
    assert held.target_assignment == {apples: (0, 1)}
    assert bench.group.listed() == GroupSummary(GROUP, "consumer", "Reconciling", "consumer")
