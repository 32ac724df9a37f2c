"""From one generation to the next: joins, syncs, and what time does to them."""

import contextlib

import pytest
from tests.coordinators.groups.classic.driver import NOW_MS, REBALANCE_MS, SESSION_MS, Driver

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    IllegalGenerationError,
    InconsistentProtocolError,
    RebalanceInProgressError,
    UnknownMemberError,
)


def test_without_a_delay_the_first_member_is_answered_at_once() -> None:
    driver = Driver(initial_rebalance_delay_ms=0)
    assert driver.joined(driver.join(version=3)).generation_id == 1


def test_the_first_rebalance_waits_for_others_to_come() -> None:
    driver = Driver(initial_rebalance_delay_ms=3_000)
    first = driver.join(version=3)
    driver.pass_time(2_999)
    assert driver.is_parked(first)
    driver.pass_time(1)
    assert driver.joined(first).generation_id == 1


def test_the_first_delay_starts_again_when_someone_came_meanwhile() -> None:
    driver = Driver(initial_rebalance_delay_ms=3_000)
    first = driver.join(version=3)
    driver.pass_time(2_000)
    second = driver.join(version=3)
    driver.pass_time(3_999)
    assert driver.is_parked(first)
    driver.pass_time(1)
    assert driver.joined(first).generation_id == driver.joined(second).generation_id == 1


def test_the_first_delay_ends_with_the_rebalance_timeout_however_many_come() -> None:
    driver = Driver(initial_rebalance_delay_ms=3_000)
    tickets = [driver.join(version=3, rebalance_ms=10_000)]
    for _ in range(9):
        driver.pass_time(1_000)
        tickets.append(driver.join(version=3, rebalance_ms=10_000))
    assert all(driver.is_parked(ticket) for ticket in tickets)
    # 3 + 3 + 3 + 1 seconds.
    driver.pass_time(1_000)
    assert not any(driver.is_parked(ticket) for ticket in tickets)


def test_a_first_delay_longer_than_the_rebalance_timeout_is_not_extended() -> None:
    driver = Driver(initial_rebalance_delay_ms=3_000)
    first = driver.join(version=3, rebalance_ms=1_000)
    driver.pass_time(1_000)
    driver.join(version=3, rebalance_ms=1_000)
    driver.pass_time(2_000)
    assert driver.joined(first).generation_id == 1


def test_a_leave_does_not_shorten_the_first_delay() -> None:
    driver = Driver(initial_rebalance_delay_ms=3_000)
    members = [driver.new_member_id(), driver.new_member_id()]
    tickets = [driver.join(member) for member in members]
    driver.leave(members[1])
    assert driver.is_parked(tickets[0])
    driver.pass_time(6_000)
    assert driver.joined(tickets[0]).generation_id == 1


def test_a_group_that_everyone_left_within_the_first_delay_is_empty_after_it() -> None:
    driver = Driver(initial_rebalance_delay_ms=3_000)
    member = driver.new_member_id()
    driver.join(member)
    driver.leave(member)
    assert driver.group.state == "PreparingRebalance"
    driver.pass_time(3_000)
    assert (driver.group.state, driver.group.generation_id) == ("Empty", 1)
    assert driver.group.next_deadline_ms is None


def test_only_the_leader_is_told_of_all_members() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    tickets = [driver.join(leader), driver.join(follower)]
    replies = [driver.joined(ticket) for ticket in tickets]
    assert [len(reply.members) for reply in replies] == [2, 0]
    assert {reply.leader for reply in replies} == {leader}
    assert {reply.protocol_name for reply in replies} == {"range"}


def test_joins_are_answered_together_when_the_last_member_has_joined() -> None:
    driver = Driver()
    members = driver.stable(3)
    waiting = [driver.join(members[0])]
    waiting.append(driver.join(members[2]))
    assert all(driver.is_parked(ticket) for ticket in waiting)
    waiting.append(driver.join(members[1]))
    assert {driver.joined(ticket).generation_id for ticket in waiting} == {4}


def test_a_rebalance_waits_for_whoever_was_sent_back_for_an_id() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    newcomer = driver.new_member_id()
    waiting = driver.join(leader)
    assert driver.is_parked(waiting)
    driver.join(newcomer)
    assert len(driver.joined(waiting).members) == 2


def test_a_rebalance_goes_on_without_a_newcomer_that_does_not_come_back() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.new_member_id()
    waiting = driver.join(leader)
    driver.pass_time(SESSION_MS)
    assert len(driver.joined(waiting).members) == 1


def test_members_that_do_not_join_in_time_are_out() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    waiting = driver.join(leader)
    keep_alive(driver, follower, REBALANCE_MS - 1)
    assert driver.is_parked(waiting)
    driver.pass_time(1)
    assert [member.member_id for member in driver.joined(waiting).members] == [leader]
    assert list(driver.group.members) == [leader]


def test_the_longest_rebalance_timeout_of_all_members_counts() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3, rebalance_ms=20_000)).member_id
    follower = driver.join(version=3, rebalance_ms=90_000)
    driver.join(leader, rebalance_ms=20_000)
    member = driver.joined(follower).member_id
    driver.sync(leader)
    driver.sync(member)
    waiting = driver.join(leader, rebalance_ms=20_000)
    keep_alive(driver, member, 89_999)
    assert driver.is_parked(waiting)
    driver.pass_time(1)
    assert driver.joined(waiting).generation_id == 3


def test_a_leader_that_does_not_join_is_replaced() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    waiting = driver.join(follower, protocols=(("range", b"new"),))
    keep_alive(driver, leader, REBALANCE_MS)
    reply = driver.joined(waiting)
    assert reply.leader == follower
    assert [member.member_id for member in reply.members] == [follower]


def test_a_leader_that_leaves_is_replaced() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.leave(leader)
    assert driver.joined(driver.join(follower)).leader == follower


def test_a_leader_stays_the_leader() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    for _ in range(3):
        tickets = [driver.join(leader), driver.join(follower)]
        assert {driver.joined(ticket).leader for ticket in tickets} == {leader}
        driver.sync(leader)


def test_static_members_that_do_not_join_stay_while_their_session_lasts() -> None:
    driver = Driver()
    leader, away = driver.stable(2, instances=True)
    waiting = driver.join(leader, instance="i1")
    keep_alive(driver, away, REBALANCE_MS)
    reply = driver.joined(waiting)
    assert {member.member_id for member in reply.members} == {leader, away}


def test_a_static_leader_that_does_not_join_hands_over_the_lead_and_stays() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    waiting = driver.join(follower, instance="i2", protocols=(("range", b"new"),))
    keep_alive(driver, leader, REBALANCE_MS)
    reply = driver.joined(waiting)
    assert reply.leader == follower
    assert {member.member_id for member in reply.members} == {leader, follower}


def test_a_rebalance_that_only_absent_static_members_could_join_waits_on() -> None:
    driver = Driver()
    first, second = driver.stable(2, instances=True)
    generation = driver.group.generation_id
    driver.leave(first)
    keep_alive(driver, second, REBALANCE_MS)
    assert driver.group.state == "PreparingRebalance"
    assert driver.group.generation_id == generation
    assert driver.joined(driver.join(second, instance="i2")).generation_id == generation + 1


def test_a_newcomer_in_a_stable_group_makes_everyone_join_again() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    newcomer = driver.join(version=3)
    assert driver.is_parked(newcomer)
    driver.join(leader)
    assert driver.joined(newcomer).leader == leader


def test_a_newcomer_while_the_assignment_is_awaited_calls_off_the_generation() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.join(follower)
    waiting = driver.sync(follower)
    driver.join(version=3)
    assert isinstance(driver.sync_reply(waiting).error, RebalanceInProgressError)
    assert driver.sync_reply(waiting).protocol_name is None
    assert driver.group.state == "PreparingRebalance"


def test_a_group_whose_members_left_is_empty_and_written_as_such() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.leave(leader)
    record = driver.last_record()
    assert (driver.group.state, driver.group.is_empty) == ("Empty", True)
    assert (record.generation_id, record.protocol_type) == (2, "consumer")
    assert (record.protocol_name, record.leader, record.members) == (None, None, ())
    assert record.state_timestamp_ms == driver.group.state_timestamp_ms == driver.now_ms


def test_a_group_without_members_does_not_wait_for_those_sent_back_for_an_id() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    newcomer = driver.new_member_id()
    driver.leave(leader)
    assert driver.group.state == "Empty"
    assert driver.joined(driver.join(newcomer)).generation_id == 3


def test_the_generation_goes_on_from_where_an_empty_group_was() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.leave(leader)
    assert driver.joined(driver.join(version=3)).generation_id == 3


def test_an_empty_group_may_change_its_type() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.leave(leader)
    reply = driver.joined(driver.join(version=3, protocol_type="connect"))
    assert (reply.protocol_type, driver.group.protocol_type) == ("connect", "connect")


def test_a_rebalance_timeout_of_zero_does_not_stop_the_clock() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3, rebalance_ms=0)).member_id
    driver.sync(leader)
    waiting = driver.join(version=3, rebalance_ms=0)
    driver.pass_time(1)
    assert [member.member_id for member in driver.joined(waiting).members] == ["client-2"]
    driver.pass_time(10)
    assert driver.group.state == "Empty"


def test_absent_static_members_with_no_time_to_join_do_not_stop_it_either() -> None:
    driver = Driver()
    first = driver.joined(driver.join(instance="i1", rebalance_ms=0)).member_id
    second = driver.join(instance="i2", rebalance_ms=0)
    driver.join(first, instance="i1", rebalance_ms=0)
    driver.leave(driver.joined(second).member_id)
    driver.take(driver.group.tick(driver.now_ms + 1))
    assert driver.group.state == "PreparingRebalance"
    assert driver.group.next_deadline_ms == driver.now_ms + 2


def test_a_reason_from_outside_starts_a_rebalance() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.take(driver.group.rebalance(driver.now_ms))
    assert driver.group.state == "PreparingRebalance"
    assert driver.joined(driver.join(leader)).generation_id == 2


def keep_alive(driver: Driver, member_id: str, ms: int) -> None:
    """Let time pass while a member sends heartbeats but does not join."""
    end_ms = driver.now_ms + ms
    while driver.now_ms < end_ms:
        with contextlib.suppress(
            RebalanceInProgressError, IllegalGenerationError, UnknownMemberError
        ):
            driver.heartbeat(member_id)
        driver.pass_time(min(5_000, end_ms - driver.now_ms))


def completing(driver: Driver) -> tuple[str, str]:
    """Two members that know of their generation and nothing else."""
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.join(follower)
    assert driver.group.state == "CompletingRebalance"
    return leader, follower


def test_followers_wait_for_the_leader() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    waiting = driver.sync(follower)
    assert driver.is_parked(waiting)

    brought = driver.sync(leader, {"client-1": b"one", "client-2": b"two"})
    assert driver.sync_reply(brought).assignment == b"one"
    reply = driver.sync_reply(waiting)
    assert (reply.error, reply.assignment) == (None, b"two")
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert driver.group.state == "Stable"


def test_the_leader_s_assignment_is_written_before_anyone_is_told() -> None:
    driver = Driver()
    _, follower = completing(driver)
    driver.sync(follower)
    written = len(driver.records)
    driver.pass_time(500)
    completed_ms = driver.group.state_timestamp_ms
    driver.sync("client-1", {"client-1": b"one", "client-2": b"two"})

    assert len(driver.records) == written + 1
    record = driver.last_record()
    assert (record.generation_id, record.protocol_name, record.leader) == (3, "range", "client-1")
    assert {m.member_id: m.assignment for m in record.members} == {
        "client-1": b"one",
        "client-2": b"two",
    }
    # As in Kafka, the record carries the time of the state in which it is written.
    assert record.state_timestamp_ms == completed_ms < driver.group.state_timestamp_ms


def test_a_member_that_the_leader_forgot_has_an_empty_assignment() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    driver.sync(leader, {"client-1": b"one", "client-9": b"nobody"})
    reply = driver.sync_reply(driver.sync(follower))
    assert (reply.error, reply.assignment) == (None, b"")


def test_in_a_stable_group_a_sync_is_answered_as_often_as_it_is_sent() -> None:
    driver = Driver()
    _, follower = driver.stable(2)
    written = len(driver.records)
    for _ in range(3):
        assert driver.sync_reply(driver.sync(follower)).assignment == b"2"
    assert len(driver.records) == written


def test_a_leader_that_syncs_again_changes_nothing() -> None:
    driver = Driver()
    leader, _ = driver.stable(2)
    assert driver.sync_reply(driver.sync(leader, {"client-1": b"new"})).assignment == b"1"


def test_a_sync_that_is_sent_twice_leaves_no_request_without_an_answer() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    lost, kept = driver.sync(follower), driver.sync(follower)
    assert isinstance(driver.sync_reply(lost).error, RebalanceInProgressError)
    driver.sync(leader, {"client-2": b"two"})
    assert driver.sync_reply(kept).assignment == b"two"


@pytest.mark.parametrize("generation", [2, 4, -1])
def test_a_sync_of_another_generation_is_refused(generation: int) -> None:
    driver = Driver()
    _, follower = completing(driver)
    reply = driver.sync_reply(driver.sync(follower, generation=generation))
    assert isinstance(reply.error, IllegalGenerationError)


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"), [("connect", "range"), ("consumer", "sticky")]
)
def test_a_sync_with_another_protocol_is_refused(protocol_type: str, protocol_name: str) -> None:
    driver = Driver()
    _, follower = completing(driver)
    ticket = driver.sync(follower, protocol_type=protocol_type, protocol_name=protocol_name)
    assert isinstance(driver.sync_reply(ticket).error, InconsistentProtocolError)


def test_an_old_client_need_not_name_the_protocol() -> None:
    driver = Driver()
    leader, _ = completing(driver)
    ticket = driver.sync(leader, protocol_type=None, protocol_name=None)
    assert driver.sync_reply(ticket).error is None


def test_a_sync_while_everyone_joins_is_told_to_join() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    reply = driver.sync_reply(driver.sync(follower))
    assert isinstance(reply.error, RebalanceInProgressError)


def test_a_sync_of_nobody_is_refused() -> None:
    driver = Driver()
    assert isinstance(driver.sync_reply(driver.sync("x")).error, UnknownMemberError)
    first, _ = driver.stable(2, instances=True)
    assert isinstance(driver.sync_reply(driver.sync("x")).error, UnknownMemberError)
    fenced = driver.sync(first, instance="i2")
    assert isinstance(driver.sync_reply(fenced).error, FencedInstanceError)
    driver.group.die(RebalanceInProgressError())
    assert isinstance(driver.sync_reply(driver.sync(first)).error, CoordinatorNotAvailableError)


def test_who_waits_for_the_leader_is_not_expected_to_send_heartbeats() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    waiting = driver.sync(follower)
    for _ in range(4):
        driver.heartbeat(leader)
        driver.pass_time(SESSION_MS - 1)
    assert driver.is_parked(waiting)
    driver.heartbeat(leader)
    driver.sync(leader, {"client-2": b"two"})

    # With the answer, the session begins anew.
    driver.pass_time(SESSION_MS - 1)
    driver.heartbeat(follower)


def test_a_leader_that_never_syncs_is_out_and_its_followers_join_again() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    waiting = driver.sync(follower)
    for _ in range(REBALANCE_MS // 5_000):
        assert driver.is_parked(waiting)
        driver.heartbeat(leader)
        driver.pass_time(5_000)
    assert isinstance(driver.sync_reply(waiting).error, RebalanceInProgressError)
    assert list(driver.group.members) == [follower]
    assert driver.joined(driver.join(follower)).leader == follower


def test_who_never_syncs_is_out_long_before_its_session_ends() -> None:
    driver = Driver()
    driver.join(version=3, session_ms=60_000, rebalance_ms=7_000)
    driver.pass_time(6_999)
    assert driver.group.state == "CompletingRebalance"
    driver.pass_time(1)
    assert driver.group.state == "Empty"


def test_a_follower_that_never_syncs_is_out_even_when_the_group_is_stable() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    driver.sync(leader)
    for _ in range(REBALANCE_MS // 5_000):
        assert driver.group.state == "Stable"
        driver.heartbeat(leader)
        driver.heartbeat(follower)
        driver.pass_time(5_000)
    assert driver.group.state == "PreparingRebalance"
    assert list(driver.group.members) == [leader]


def test_when_all_have_synced_nobody_is_missed_later() -> None:
    driver = Driver()
    members = driver.stable(2)
    for _ in range(3 * REBALANCE_MS // 5_000):
        for member in members:
            driver.heartbeat(member)
        driver.pass_time(5_000)
    assert driver.group.state == "Stable"


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
