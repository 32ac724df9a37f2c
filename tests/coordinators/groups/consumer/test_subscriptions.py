"""What a change of topics or subscriptions sets off."""

import pytest
from tests.coordinators.groups.consumer.model import Bench, Topics

from headrace.coordinators.groups.consumer.subscriptions import metadata_hash
from headrace.coordinators.groups.limits import ConsumerLimits


@pytest.fixture
def bench() -> Bench:
    return Bench(Topics(apples=4, pears=2))


def test_a_topic_that_grows_gives_the_group_a_new_epoch(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.topics.grow("apples", 5)

    reply = bench.heartbeat("a", 2)

    assert reply.member_epoch == 3
    assert reply.assignment == {bench.topics.id("apples"): (0, 1, 2, 3, 4)}


def test_a_topic_nobody_subscribes_to_does_not(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.topics.create("plums", 9)

    assert bench.heartbeat("a", 2).member_epoch == 2


def test_a_deleted_topic_is_asked_back(bench: Bench) -> None:
    bench.join("a", "apples", "pears")
    bench.topics.delete("pears")

    reply = bench.heartbeat("a", 2)
    apples = bench.topics.id("apples")
    assert reply.assignment == {apples: (0, 1, 2, 3)}
    assert bench.heartbeat("a", 2, owned=reply.assignment).member_epoch == 3


def test_a_topic_made_anew_under_the_same_name_is_another(bench: Bench) -> None:
    bench.join("a", "apples")
    bench.topics.delete("apples")
    new_id = bench.topics.create("apples", 2)

    bench.heartbeat("a", 2)

    assert bench.heartbeat("a", 2, owned={}).assignment == {new_id: (0, 1)}


def test_what_is_no_longer_subscribed_to_is_asked_back_before_there_is_a_new_target() -> None:
    bench = Bench(Topics(apples=1, pears=1), ConsumerLimits(assignment_interval_ms=60_000))
    bench.join("a", "apples", "pears")

    reply = bench.heartbeat("a", 2, topic_names=["pears"])

    assert (reply.member_epoch, reply.assignment) == (2, {bench.topics.id("pears"): (0,)})


def test_most_votes_choose_the_assignor(bench: Bench) -> None:
    bench.join("a", "apples")
    assert bench.group.describe().assignor == "uniform"

    bench.heartbeat("a", 2, server_assignor="range")

    assert bench.group.describe().assignor == "range"


def test_the_metadata_hash_is_the_same_in_every_process_and_other_for_other_topics() -> None:
    """It is written down: a hash that differed after a restart would cost every group an epoch."""
    topics = Topics(apples=4, pears=2)
    before = metadata_hash(["apples", "pears"], topics)

    assert before == metadata_hash({"pears", "apples", "gone"}, topics) == -3134848601262602310
    assert metadata_hash(["gone"], topics) == 0
    topics.grow("pears", 3)
    assert metadata_hash(["apples", "pears"], topics) != before
