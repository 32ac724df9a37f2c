"""Members with a name of their own (KIP-345), and what their return costs."""

import pytest
from tests.coordinators.groups.classic.driver import RANGE, READS_T, REBALANCE_MS, Driver

from headrace.errors import (
    FencedInstanceError,
    IllegalGenerationError,
    UnknownMemberError,
)


def test_a_static_member_that_returns_to_a_stable_group_gets_a_new_id_and_no_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    generation = driver.group.generation_id
    reply = driver.joined(driver.join(instance="i2"))

    assert (reply.member_id, reply.generation_id) == ("i2-3", generation)
    assert (reply.leader, reply.members, reply.skip_assignment) == (leader, (), False)
    assert driver.group.state == "Stable"
    assert follower not in driver.group.members
    assert driver.sync_reply(driver.sync("i2-3", instance="i2")).assignment == b"2"


def test_the_new_id_is_written() -> None:
    driver = Driver()
    leader, _ = driver.stable(2, instances=True)
    driver.join(instance="i2")
    written = {
        m.group_instance_id: (m.member_id, m.assignment) for m in driver.last_record().members
    }
    assert written == {"i1": (leader, b"1"), "i2": ("i2-3", b"2")}


def test_who_goes_by_the_old_id_is_fenced() -> None:
    driver = Driver()
    _, follower = driver.stable(2, instances=True)
    driver.join(instance="i2")
    with pytest.raises(FencedInstanceError):
        driver.heartbeat(follower, instance="i2")
    with pytest.raises(FencedInstanceError):
        driver.commit(follower, instance="i2")
    fenced = driver.sync_reply(driver.sync(follower, instance="i2"))
    assert isinstance(fenced.error, FencedInstanceError)
    assert isinstance(driver.leave(follower, instance="i2").error, FencedInstanceError)
    with pytest.raises(UnknownMemberError):
        driver.heartbeat(follower)
    driver.heartbeat("i2-3", instance="i2")


def test_a_returning_leader_is_told_not_to_assign_anew() -> None:
    driver = Driver()
    driver.stable(2, instances=True)
    reply = driver.joined(driver.join(instance="i1"))
    assert (reply.leader, reply.member_id, reply.skip_assignment) == ("i1-3", "i1-3", True)
    assert [(m.member_id, m.metadata) for m in reply.members] == [
        ("i2-2", READS_T),
        ("i1-3", READS_T),
    ]
    assert driver.group.leader == "i1-3"


def test_a_returning_leader_that_cannot_be_told_so_is_told_of_a_leader_that_is_gone() -> None:
    driver = Driver()
    leader, _ = driver.stable(2, instances=True)
    reply = driver.joined(driver.join(instance="i1", version=8))
    assert (reply.leader, reply.member_id, reply.members) == (leader, "i1-3", ())
    assert not reply.skip_assignment
    # It leads all the same: as soon as it joins again, everyone must.
    assert driver.group.leader == "i1-3"
    driver.join("i1-3", instance="i1")
    assert driver.group.state == "PreparingRebalance"


def test_a_return_that_changes_the_choice_of_the_protocol_starts_a_rebalance() -> None:
    driver = Driver()
    both = (*RANGE, ("sticky", b""))
    first = driver.joined(driver.join(instance="i1", protocols=both)).member_id
    assert driver.sync_reply(driver.sync(first)).protocol_name == "range"

    reply = driver.joined(driver.join(instance="i1", protocols=both[::-1]))
    assert (reply.generation_id, reply.protocol_name) == (2, "sticky")


def test_a_return_with_another_subscription_alone_starts_none() -> None:
    # As in Kafka: only the choice of the protocol counts. A leader sees it (KIP-814) and joins.
    driver = Driver()
    driver.stable(2, instances=True)
    driver.join(instance="i2", protocols=(("range", b"new"),))
    assert driver.group.state == "Stable"
    subscriptions = {m.group_instance_id: m.subscription for m in driver.last_record().members}
    assert subscriptions == {"i1": READS_T, "i2": b"new"}


def test_a_return_while_the_assignment_is_awaited_calls_off_the_generation() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    driver.join(leader, instance="i1")
    driver.join(follower, instance="i2")
    waiting = driver.sync(follower, instance="i2")
    generation = driver.group.generation_id

    back = driver.join(instance="i2")
    assert isinstance(driver.sync_reply(waiting).error, FencedInstanceError)
    assert driver.is_parked(back)
    driver.join(leader, instance="i1")
    assert driver.joined(back).generation_id == generation + 1
    with pytest.raises(IllegalGenerationError):
        driver.heartbeat(leader, generation=generation)


def test_a_return_while_everyone_joins_takes_the_place_of_the_parked_join() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    fenced = driver.join(follower, instance="i2", protocols=(("range", b"new"),))
    back = driver.join(instance="i2")
    reply = driver.join_reply(fenced)
    assert isinstance(reply.error, FencedInstanceError)
    assert (reply.member_id, reply.leader) == (follower, "")
    driver.join(leader, instance="i1")
    assert driver.joined(back).member_id == "i2-3"


def test_a_member_that_returns_before_it_synced_is_missed_until_it_syncs() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    driver.join(leader, instance="i1")
    driver.join(follower, instance="i2")
    driver.sync(leader, instance="i1")
    back = driver.joined(driver.join(instance="i2")).member_id
    driver.sync(back, instance="i2")
    for _ in range(2 * REBALANCE_MS // 5_000):
        driver.heartbeat(leader)
        driver.heartbeat(back)
        driver.pass_time(5_000)
    assert driver.group.state == "Stable"


def test_a_member_that_returned_and_never_syncs_is_out() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    driver.join(leader, instance="i1")
    driver.join(follower, instance="i2")
    driver.sync(leader, instance="i1")
    back = driver.joined(driver.join(instance="i2")).member_id
    for _ in range(REBALANCE_MS // 5_000):
        driver.heartbeat(leader)
        driver.heartbeat(back)
        driver.pass_time(5_000)
    assert driver.group.state == "PreparingRebalance"
    assert list(driver.group.members) == [leader]


def test_the_session_of_one_who_returned_is_its_new_one() -> None:
    driver = Driver()
    (leader,) = driver.stable(1, instances=True)
    driver.join(instance="i1", session_ms=6_000)
    assert leader not in driver.group.members
    driver.pass_time(5_999)
    assert driver.group.state == "Stable"
    driver.pass_time(1)
    assert driver.group.state == "Empty"


def test_a_new_id_that_cannot_be_written_is_taken_back() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    before = driver.group.describe()
    driver.join(instance="i1", session_ms=20_000, protocols=(("range", b"new"),))
    driver.take(driver.group.write_failed(driver.now_ms))

    after = driver.group.describe()
    assert sorted(after.members) == sorted(before.members)
    assert (driver.group.state, driver.group.leader) == ("Stable", leader)
    assert driver.group.members[leader].session_timeout_ms == 10_000
    driver.heartbeat(leader, instance="i1")
    driver.heartbeat(follower, instance="i2")
