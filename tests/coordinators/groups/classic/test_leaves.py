"""Who goes, and what those hear who stay."""

import pytest
from tests.coordinators.groups.classic.driver import Driver

from headrace.coordinators.groups.messages import LeavingMember
from headrace.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    RebalanceInProgressError,
    UnknownMemberError,
)


def test_a_member_that_leaves_makes_the_others_join_again() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    result = driver.leave(follower)
    assert (result.member_id, result.group_instance_id, result.error) == (follower, None, None)
    assert driver.group.state == "PreparingRebalance"
    assert list(driver.group.members) == [leader]


def test_a_stranger_cannot_leave() -> None:
    driver = Driver()
    driver.stable()
    assert isinstance(driver.leave("client-9").error, UnknownMemberError)
    assert isinstance(driver.leave("").error, UnknownMemberError)
    assert driver.group.state == "Stable"


def test_many_leave_in_one_request_and_each_is_told() -> None:
    driver = Driver()
    first, second, third = driver.stable(3, instances=True)
    results = driver.leave_all(
        LeavingMember("", "i1"),
        LeavingMember("", "i9"),
        LeavingMember(second, "i3"),
        LeavingMember(third, "i3"),
        LeavingMember(third, "i3"),
    )
    assert [type(result.error) for result in results] == [
        type(None),
        UnknownMemberError,
        FencedInstanceError,
        type(None),
        UnknownMemberError,
    ]
    assert (results[0].member_id, results[0].group_instance_id) == ("", "i1")
    assert first not in driver.group.members
    assert list(driver.group.members) == [second]


def test_who_was_sent_back_for_an_id_may_decline() -> None:
    driver = Driver()
    member = driver.new_member_id()
    assert driver.leave(member).error is None
    assert driver.group.is_vacant
    assert driver.group.generation_id == 0
    assert isinstance(driver.leave(member).error, UnknownMemberError)


def test_a_rebalance_does_not_wait_for_one_who_declined() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    newcomer = driver.new_member_id()
    waiting = driver.join(leader)
    driver.leave(newcomer)
    assert driver.joined(waiting).generation_id == 2


def test_one_who_declines_makes_a_stable_group_join_again_as_in_kafka() -> None:
    driver = Driver()
    driver.stable()
    driver.leave(driver.new_member_id())
    assert driver.group.state == "PreparingRebalance"


def test_a_parked_join_of_one_who_left_is_answered() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    waiting = driver.join(leader)
    driver.leave(leader)
    reply = driver.join_reply(waiting)
    assert isinstance(reply.error, UnknownMemberError)
    assert reply.member_id == ""
    assert list(driver.group.members) == [follower]


def test_a_parked_sync_of_one_who_left_is_answered() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.join(follower)
    waiting = driver.sync(follower)
    driver.leave(follower)
    assert isinstance(driver.sync_reply(waiting).error, UnknownMemberError)


def test_the_last_one_missing_ends_the_rebalance_by_leaving() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    waiting = driver.join(leader)
    driver.leave(follower)
    assert driver.joined(waiting).generation_id == 3


def test_nobody_leaves_a_dead_group() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.group.die(RebalanceInProgressError())
    with pytest.raises(CoordinatorNotAvailableError):
        driver.leave(leader)
