"""What happens when time passes and a member is not heard of."""

import pytest
from tests.coordinators.groups.classic.driver import NOW_MS, REBALANCE_MS, SESSION_MS, Driver

from headrace.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberError,
)


def test_a_member_that_is_not_heard_of_is_out_when_its_session_ends() -> None:
    driver = Driver()
    leader, silent = driver.stable(2)
    driver.pass_time(SESSION_MS - 1)
    driver.heartbeat(leader)
    assert silent in driver.group.members
    driver.pass_time(1)
    assert list(driver.group.members) == [leader]
    assert driver.group.state == "PreparingRebalance"


def test_a_static_member_that_is_not_heard_of_is_out_as_well() -> None:
    driver = Driver()
    leader, silent = driver.stable(2, instances=True)
    driver.pass_time(SESSION_MS - 1)
    driver.heartbeat(leader)
    driver.pass_time(1)
    assert silent not in driver.group.members


def test_heartbeats_keep_a_member_in() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    for _ in range(10):
        driver.pass_time(SESSION_MS - 1)
        driver.heartbeat(leader)
    assert driver.group.state == "Stable"


def test_commits_keep_a_member_in() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    for _ in range(10):
        driver.pass_time(SESSION_MS - 1)
        driver.commit(leader)
    assert driver.group.state == "Stable"


def test_commits_of_transactions_do_not() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.pass_time(SESSION_MS - 1)
    driver.commit(leader, is_transactional=True)
    driver.pass_time(1)
    assert driver.group.state == "Empty"


def test_when_all_members_are_out_the_group_is_empty_and_written() -> None:
    driver = Driver()
    driver.stable(3)
    driver.pass_time(SESSION_MS)
    assert driver.group.state == "Empty"
    assert driver.last_record().members == ()
    assert driver.group.next_deadline_ms is None


def test_who_waits_for_others_to_join_is_not_expected_to_send_heartbeats() -> None:
    driver = Driver()
    leader, slow = driver.stable(2)
    waiting = driver.join(leader)
    for _ in range(5):
        driver.pass_time(SESSION_MS - 1)
        with pytest.raises(RebalanceInProgressError):
            driver.heartbeat(slow)
    assert driver.is_parked(waiting)
    driver.join(slow)
    assert driver.joined(waiting).generation_id == 3


def test_a_rebalance_ends_early_when_the_one_it_waits_for_is_out() -> None:
    driver = Driver()
    leader, _ = driver.stable(2)
    waiting = driver.join(leader)
    driver.pass_time(SESSION_MS)
    assert [member.member_id for member in driver.joined(waiting).members] == [leader]


def test_a_new_generation_begins_a_new_session() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.pass_time(SESSION_MS - 1)
    driver.join(leader)
    driver.pass_time(SESSION_MS - 1)
    driver.heartbeat(leader)


def test_who_was_sent_back_for_an_id_is_expected_for_one_session() -> None:
    driver = Driver()
    member = driver.join_reply(driver.join(session_ms=7_000)).member_id
    driver.pass_time(6_999)
    assert not driver.group.is_vacant
    driver.pass_time(1)
    assert driver.group.is_vacant
    assert isinstance(driver.join_reply(driver.join(member)).error, UnknownMemberError)


def test_everyone_who_was_sent_back_is_waited_for() -> None:
    driver = Driver()
    for session_ms in (7_000, 9_000, 8_000):
        driver.join(session_ms=session_ms)
    driver.pass_time(8_999)
    assert not driver.group.is_vacant
    driver.pass_time(1)
    assert driver.group.is_vacant


def test_the_end_of_that_wait_leaves_a_stable_group_alone() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.new_member_id()
    driver.pass_time(SESSION_MS - 1)
    driver.heartbeat(leader)
    driver.pass_time(1)
    assert driver.group.state == "Stable"


def test_a_heartbeat_while_everyone_joins_says_so_and_counts() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.pass_time(SESSION_MS - 1)
    with pytest.raises(RebalanceInProgressError):
        driver.heartbeat(follower)
    driver.pass_time(SESSION_MS - 1)
    assert follower in driver.group.members


def test_a_heartbeat_while_the_assignment_is_awaited_is_a_heartbeat() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3)).member_id
    for _ in range(3):
        driver.pass_time(SESSION_MS - 1)
        driver.heartbeat(leader)
    assert driver.group.state == "CompletingRebalance"


def test_a_session_can_end_while_the_assignment_is_awaited() -> None:
    driver = Driver()
    driver.join(version=3)
    driver.pass_time(SESSION_MS)
    assert (driver.group.state, driver.group.generation_id) == ("Empty", 2)


def test_heartbeats_are_refused_to_strangers_and_to_the_past() -> None:
    driver = Driver()
    with pytest.raises(UnknownMemberError):
        driver.heartbeat("client-1")
    first, _ = driver.stable(2, instances=True)
    with pytest.raises(UnknownMemberError):
        driver.heartbeat("client-9")
    with pytest.raises(UnknownMemberError):
        driver.heartbeat(first, instance="i9")
    with pytest.raises(FencedInstanceError):
        driver.heartbeat(first, instance="i2")
    for generation in (1, 3, -1):
        with pytest.raises(IllegalGenerationError):
            driver.heartbeat(first, generation=generation)
    driver.group.die(RebalanceInProgressError())
    with pytest.raises(CoordinatorNotAvailableError):
        driver.heartbeat(first)


def test_a_static_member_may_send_heartbeats_without_its_instance() -> None:
    driver = Driver()
    (leader,) = driver.stable(1, instances=True)
    driver.heartbeat(leader)


def test_an_early_tick_does_nothing_but_find_the_next_deadline() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.pass_time(4_000)
    driver.heartbeat(leader)
    assert driver.group.next_deadline_ms == NOW_MS + SESSION_MS
    outcome = driver.group.tick(NOW_MS + SESSION_MS)
    assert (outcome.records, outcome.answers) == ([], [])
    assert driver.group.next_deadline_ms == NOW_MS + 4_000 + SESSION_MS


def test_a_dead_group_wants_nothing() -> None:
    driver = Driver()
    driver.stable()
    driver.group.die(RebalanceInProgressError())
    assert driver.group.next_deadline_ms is None
    assert driver.group.tick(driver.now_ms + REBALANCE_MS).records == []
