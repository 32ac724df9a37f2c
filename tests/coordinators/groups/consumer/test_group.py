import pytest
from tests.coordinators.groups.consumer.model import Bench, Topics
from tests.coordinators.groups.consumer.test_classic_members import WISHES

from headrace.coordinators.errors import (
    IllegalGenerationError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from headrace.coordinators.groups.limits import ConsumerLimits


@pytest.fixture
def bench() -> Bench:
    bench = Bench(Topics(apples=2, pears=1), ConsumerLimits(assignment_interval_ms=0))
    bench.join("a", "apples")
    return bench


def test_a_member_commits_in_its_epoch(bench: Bench) -> None:
    bench.group.check_commit("a", None, 2, partitions=[("apples", 0)], topics=bench.topics)


def test_an_older_epoch_is_good_for_partitions_that_it_had_then(bench: Bench) -> None:
    bench.heartbeat("a", 2, topic_names=["apples", "pears"])

    bench.group.check_commit("a", None, 2, partitions=[("apples", 1)], topics=bench.topics)
    with pytest.raises(StaleMemberEpochError) as refusal:
        bench.group.check_commit("a", None, 2, partitions=[("pears", 0)], topics=bench.topics)

    assert str(refusal.value) == (
        "Received member epoch 2 is older than assignment epoch 3 for partition pears-0."
    )


def test_an_older_epoch_is_good_for_partitions_yet_to_be_given_up(bench: Bench) -> None:
    bench.heartbeat("a", 2, topic_names=["apples", "pears"])
    bench.join("b", "apples", "pears")
    bench.heartbeat("a", 3)

    bench.group.check_commit(
        "a", None, 2, partitions=[("apples", 0), ("apples", 1)], topics=bench.topics
    )


def test_an_older_epoch_is_not_good_for_partitions_of_others(bench: Bench) -> None:
    bench.heartbeat("a", 2, topic_names=["apples", "pears"])

    for name in ("apples", "none"):
        with pytest.raises(StaleMemberEpochError, match="is not assigned or pending revocation"):
            bench.group.check_commit("a", None, 2, partitions=[(name, 7)], topics=bench.topics)


def test_an_epoch_from_the_future_is_stale(bench: Bench) -> None:
    with pytest.raises(StaleMemberEpochError) as refusal:
        bench.group.check_commit("a", None, 3)

    assert str(refusal.value) == "Received member epoch 3 is newer than current member epoch 2."


def test_strangers_do_not_commit_while_there_are_members(bench: Bench) -> None:
    with pytest.raises(UnknownMemberError):
        bench.group.check_commit("", None, -1)
    bench.group.check_commit("", None, -1, is_transactional=True)


def test_anyone_commits_to_an_empty_group(bench: Bench) -> None:
    bench.heartbeat("a", -1)

    bench.group.check_commit("", None, -1)
    with pytest.raises(UnknownMemberError):
        bench.group.check_commit("a", None, 2)


def test_a_classic_member_commits_by_generation(bench: Bench) -> None:
    reply, _ = bench.classic_join("c", WISHES)

    bench.group.check_commit("c", None, reply.generation_id)
    with pytest.raises(IllegalGenerationError):
        bench.group.check_commit("c", None, reply.generation_id + 1)


def test_offsets_are_read_in_the_members_epoch_or_by_strangers(bench: Bench) -> None:
    bench.group.check_fetch("a", 2)
    bench.group.check_fetch(None, -1)
    with pytest.raises(StaleMemberEpochError):
        bench.group.check_fetch("a", 1)
    with pytest.raises(UnknownMemberError):
        bench.group.check_fetch("b", 2)


def test_only_an_empty_group_may_be_deleted(bench: Bench) -> None:
    with pytest.raises(NonEmptyGroupError):
        bench.group.check_delete()
    bench.heartbeat("a", -1)

    bench.group.check_delete()
    for record in bench.group.tombstones():
        bench.group.apply(record)
    assert bench.group.is_void
    assert bench.group.state == "Dead"
