"""Static members of the new protocol: who has an instance id, and who gets it next."""

import pytest
from tests.coordinators.groups.consumer.model import Bench, Topics

from headrace.coordinators.errors import (
    FencedInstanceError,
    UnknownMemberError,
    UnreleasedInstanceError,
)


@pytest.fixture
def bench() -> Bench:
    return Bench(Topics(apples=4, pears=2))


def test_a_static_member_that_left_for_a_while_gets_its_partitions_back(bench: Bench) -> None:
    assigned = bench.join("a", "apples", instance_id="one").assignment
    bench.join("b", "pears")
    epoch = bench.group.epoch

    assert bench.heartbeat("a", -2, instance_id="one").member_epoch == -2
    reply = bench.join("c", "apples", instance_id="one")

    assert (reply.assignment, bench.group.epoch) == (assigned, epoch)
    assert {one.member_id for one in bench.group.describe().members} == {"b", "c"}


def test_an_instance_id_in_use_is_not_released(bench: Bench) -> None:
    bench.join("a", "apples", instance_id="one")

    with pytest.raises(UnreleasedInstanceError) as refusal:
        bench.join("b", "apples", instance_id="one")

    assert str(refusal.value) == (
        "Static member b with instance id one cannot join the group because the instance id is "
        "owned by a member."
    )


def test_the_replaced_static_member_is_fenced(bench: Bench) -> None:
    bench.join("a", "apples", instance_id="one")
    bench.heartbeat("a", -2, instance_id="one")
    bench.join("b", "apples", instance_id="one")

    with pytest.raises(FencedInstanceError, match="was fenced by member b"):
        bench.heartbeat("a", 2, instance_id="one")


def test_an_unknown_instance_is_unknown(bench: Bench) -> None:
    with pytest.raises(UnknownMemberError, match="Instance id one is unknown"):
        bench.heartbeat("a", 2, instance_id="one")


def test_a_static_member_that_stays_away_is_fenced_after_its_session(bench: Bench) -> None:
    bench.join("a", "apples", instance_id="one")
    bench.heartbeat("a", -2, instance_id="one")
    bench.now_ms += 45_000
    bench.tick()

    assert bench.group.is_empty
