"""Who is let in, who is sent back, who only hears again what it missed; static members too."""

import pytest
from tests.coordinators.groups.classic.driver import RANGE, READS_T, REBALANCE_MS, Driver

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    GroupError,
    GroupFullError,
    IllegalGenerationError,
    InconsistentProtocolError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS


def test_a_dynamic_newcomer_is_sent_back_with_an_id_and_let_in_with_it() -> None:
    driver = Driver()

    sent_back = driver.join_reply(driver.join())
    assert isinstance(sent_back.error, MemberIdRequiredError)
    assert (sent_back.member_id, sent_back.generation_id) == ("client-1", -1)
    assert (driver.group.state, driver.group.is_vacant) == ("Empty", False)

    reply = driver.joined(driver.join("client-1"))
    assert (reply.member_id, reply.generation_id, reply.leader) == ("client-1", 1, "client-1")
    assert driver.group.state == "CompletingRebalance"


def test_an_old_client_is_let_in_at_once() -> None:
    driver = Driver()
    assert driver.joined(driver.join(version=3)).member_id == "client-1"


def test_a_static_newcomer_is_let_in_at_once_under_its_instance_s_name() -> None:
    driver = Driver()
    reply = driver.joined(driver.join(instance="blue"))
    assert reply.member_id == "blue-1"
    assert [member.group_instance_id for member in reply.members] == ["blue"]


def test_who_was_sent_back_for_an_id_cannot_come_as_a_static_member() -> None:
    driver = Driver()
    member = driver.new_member_id()
    reply = driver.join_reply(driver.join(member, instance="blue"))
    assert type(reply.error) is GroupError
    assert reply.member_id == member


def test_an_id_that_the_group_did_not_give_out_is_unknown() -> None:
    driver = Driver()
    reply = driver.join_reply(driver.join("mine"))
    assert isinstance(reply.error, UnknownMemberError)
    assert reply.member_id == "mine"
    assert driver.group.is_vacant
    assert driver.records == []


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_outside_the_bounds_is_refused(session_ms: int) -> None:
    driver = Driver()
    reply = driver.join_reply(driver.join(session_ms=session_ms))
    assert isinstance(reply.error, InvalidSessionTimeoutError)
    assert driver.group.is_vacant


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_a_session_are_allowed(session_ms: int) -> None:
    driver = Driver()
    assert driver.joined(driver.join(session_ms=session_ms, version=3)).generation_id == 1


def test_the_first_member_must_name_a_type_and_a_protocol() -> None:
    driver = Driver()
    for ticket in (driver.join(protocol_type=""), driver.join(protocols=())):
        assert isinstance(driver.join_reply(ticket).error, InconsistentProtocolError)
    assert driver.group.is_vacant


def test_a_newcomer_of_another_type_is_refused() -> None:
    driver = Driver()
    driver.stable()
    reply = driver.join_reply(driver.join(protocol_type="connect"))
    assert isinstance(reply.error, InconsistentProtocolError)


def test_a_newcomer_without_a_protocol_that_all_know_is_refused() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3, protocols=(("a", b""), ("b", b"")))).member_id
    other = driver.join(version=3, protocols=(("b", b""), ("c", b"")))
    driver.join(leader, protocols=(("a", b""), ("b", b"")))
    assert driver.joined(other).protocol_name == "b"

    for name in "ac":
        reply = driver.join_reply(driver.join(protocols=((name, b""),)))
        assert isinstance(reply.error, InconsistentProtocolError)


def test_a_known_member_cannot_drop_the_last_protocol_that_all_know() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    reply = driver.join_reply(driver.join(leader, protocols=(("sticky", b""),)))
    assert isinstance(reply.error, InconsistentProtocolError)
    assert reply.member_id == leader
    assert driver.group.state == "Stable"


def test_a_full_group_takes_nobody_in() -> None:
    driver = Driver(max_size=2)
    members = driver.stable(2)
    reply = driver.join_reply(driver.join())
    assert isinstance(reply.error, GroupFullError)
    assert reply.member_id == ""
    assert list(driver.group.members) == members


def test_room_is_counted_by_joins_while_a_rebalance_is_prepared() -> None:
    driver = Driver(max_size=2)
    leader, follower = driver.stable(2)
    waiting = driver.join(leader)
    newcomer = driver.join(version=3)
    assert driver.is_parked(newcomer)
    # Who waits already has its place, even if it asks again.
    waiting = driver.join(leader)
    assert driver.is_parked(waiting)

    # The newcomer took the place: the follower is out, and nobody is missing any more.
    late = driver.join_reply(driver.join(follower))
    assert isinstance(late.error, GroupFullError)
    assert late.member_id == ""
    assert driver.joined(waiting).generation_id == driver.joined(newcomer).generation_id
    assert list(driver.group.members) == [leader, driver.joined(newcomer).member_id]


def test_who_is_refused_for_size_is_no_longer_expected() -> None:
    driver = Driver(max_size=1)
    first, second = driver.new_member_id(), driver.new_member_id()
    driver.joined(driver.join(first))
    assert isinstance(driver.join_reply(driver.join(second)).error, GroupFullError)
    assert isinstance(driver.join_reply(driver.join(second)).error, GroupFullError)
    driver.leave(first)
    assert driver.group.is_vacant


def test_a_follower_with_nothing_new_to_say_is_told_of_the_generation() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    generation = driver.group.generation_id
    reply = driver.joined(driver.join(follower))
    assert (reply.generation_id, reply.leader, reply.members) == (generation, leader, ())
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert driver.group.state == "Stable"


def test_a_follower_with_something_new_to_say_starts_a_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    ticket = driver.join(follower, protocols=(("range", b"new"),))
    assert driver.is_parked(ticket)
    assert driver.group.state == "PreparingRebalance"
    metadata = {m.member_id: m.metadata for m in driver.joined(driver.join(leader)).members}
    assert metadata == {leader: READS_T, follower: b"new"}


def test_a_leader_that_joins_a_stable_group_starts_a_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    generation = driver.group.generation_id
    ticket = driver.join(leader)
    assert driver.is_parked(ticket)
    driver.join(follower)
    assert driver.joined(ticket).generation_id == generation + 1


def test_while_the_assignment_is_awaited_a_repeated_join_is_told_again() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3)).member_id
    again = driver.joined(driver.join(leader))
    assert again.generation_id == 1
    assert [member.member_id for member in again.members] == [leader]
    assert driver.group.state == "CompletingRebalance"


def test_while_the_assignment_is_awaited_new_metadata_starts_a_rebalance() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3)).member_id
    again = driver.joined(driver.join(leader, protocols=(("range", b"new"),)))
    assert again.generation_id == 2
    assert again.members[0].metadata == b"new"


def test_a_join_that_is_sent_twice_leaves_no_request_without_an_answer() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    lost, kept = driver.join(leader), driver.join(leader)
    reply = driver.join_reply(lost)
    assert isinstance(reply.error, RebalanceInProgressError)
    assert reply.member_id == leader
    assert driver.is_parked(kept)
    driver.join(follower)
    assert driver.joined(kept).leader == leader


def test_a_known_member_must_come_with_the_instance_it_has() -> None:
    driver = Driver()
    first, second = driver.stable(2, instances=True)
    fenced = driver.join_reply(driver.join(first, instance="i2"))
    assert isinstance(fenced.error, FencedInstanceError)
    assert fenced.member_id == first
    unknown = driver.join_reply(driver.join(second, instance="i9"))
    assert isinstance(unknown.error, UnknownMemberError)


def test_a_dead_group_sends_everyone_elsewhere() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.take(driver.group.die(RebalanceInProgressError()))
    for ticket in (driver.join(), driver.join(leader)):
        assert isinstance(driver.join_reply(ticket).error, CoordinatorNotAvailableError)


def test_a_group_is_written_with_its_first_newcomer_and_not_again() -> None:
    driver = Driver()
    driver.new_member_id()
    driver.new_member_id()
    assert len(driver.records) == 1
    record = driver.last_record()
    assert (record.generation_id, record.protocol_type, record.members) == (0, "", ())


def test_who_waits_in_its_first_join_is_given_up_after_five_minutes() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.join(leader, rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    driver.sync(leader)
    newcomer = driver.join(version=3)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000 - 1):
        driver.pass_time(5_000)
        with pytest.raises(RebalanceInProgressError):
            driver.heartbeat(leader)
    assert driver.is_parked(newcomer)

    driver.pass_time(5_000)
    reply = driver.join_reply(newcomer)
    assert isinstance(reply.error, UnknownMemberError)
    assert reply.member_id == ""
    assert list(driver.group.members) == [leader]


def test_a_protocol_named_twice_counts_once() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3, protocols=RANGE + RANGE)).member_id
    follower = driver.join(version=3)
    driver.join(leader, protocols=RANGE + RANGE)
    assert driver.joined(follower).protocol_name == "range"


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
