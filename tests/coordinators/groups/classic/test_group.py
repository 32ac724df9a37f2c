"""What a classic group shows, allows and forgets; and who leaves it."""

import pytest
from tests.coordinators.groups.classic.driver import NOW_MS, RANGE, READS_T, SESSION_MS, Driver

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    GroupNotFoundError,
    IllegalGenerationError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.consumer_protocol import Subscription, encode_subscription
from headrace.coordinators.groups.messages import DescribedMember, LeavingMember
from headrace.coordinators.groups.records import ClassicMember, GroupMetadata


def test_anyone_may_commit_to_an_empty_group_without_a_generation() -> None:
    driver = Driver()
    driver.commit("", generation=-1)
    driver.commit("whoever", generation=-1)
    with pytest.raises(UnknownMemberError):
        driver.commit("whoever", generation=0)


def test_only_members_may_commit_to_a_group_that_has_some() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    with pytest.raises(UnknownMemberError):
        driver.commit("", generation=-1)
    with pytest.raises(UnknownMemberError):
        driver.commit("client-9")
    with pytest.raises(IllegalGenerationError):
        driver.commit(leader, generation=-1)
    with pytest.raises(IllegalGenerationError):
        driver.commit(leader, generation=0)
    driver.commit(leader)


def test_a_fenced_instance_may_not_commit() -> None:
    driver = Driver()
    first, _ = driver.stable(2, instances=True)
    with pytest.raises(FencedInstanceError):
        driver.commit(first, instance="i2")
    with pytest.raises(UnknownMemberError):
        driver.commit(first, instance="i9")
    driver.commit(first, instance="i1")


def test_members_may_commit_before_they_join_the_next_generation() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    assert driver.group.state == "PreparingRebalance"
    driver.commit(follower)


def test_members_may_not_commit_while_the_assignment_is_awaited() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3)).member_id
    with pytest.raises(RebalanceInProgressError):
        driver.commit(leader)
    driver.commit(leader, is_transactional=True)


def test_a_transaction_may_commit_without_being_a_member() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.commit("", generation=-1, is_transactional=True)
    with pytest.raises(IllegalGenerationError):
        driver.commit(leader, generation=0, is_transactional=True)


def test_nobody_commits_to_a_dead_group() -> None:
    driver = Driver()
    driver.group.die(RebalanceInProgressError())
    with pytest.raises(CoordinatorNotAvailableError):
        driver.commit("", generation=-1)


def test_only_an_empty_group_can_be_deleted() -> None:
    driver = Driver()
    driver.group.check_delete()
    (leader,) = driver.stable()
    with pytest.raises(NonEmptyGroupError):
        driver.group.check_delete()
    driver.leave(leader)
    driver.group.check_delete()
    driver.group.die(RebalanceInProgressError())
    with pytest.raises(GroupNotFoundError):
        driver.group.check_delete()


def test_offsets_can_be_deleted_under_consumers_but_not_under_others() -> None:
    consumers, workers = Driver(), Driver()
    consumers.stable()
    consumers.group.check_offset_delete()
    workers.join(version=3, protocol_type="connect")
    with pytest.raises(NonEmptyGroupError):
        workers.group.check_offset_delete()
    consumers.group.die(RebalanceInProgressError())
    with pytest.raises(GroupNotFoundError):
        consumers.group.check_offset_delete()


def test_the_topics_of_all_members_are_known() -> None:
    driver = Driver()
    leader = driver.joined(driver.join(version=3)).member_id
    reads_u = encode_subscription(Subscription(("t", "u"), version=0))
    driver.join(version=3, protocols=(("range", reads_u),))
    assert driver.group.subscribed_topics() == frozenset({"t"})
    driver.join(leader)
    assert driver.group.subscribed_topics() == frozenset({"t", "u"})
    assert driver.group.is_subscribed_to("u")
    assert not driver.group.is_subscribed_to("v")


def test_consumers_whose_subscription_cannot_be_read_may_read_anything() -> None:
    driver = Driver()
    driver.join(version=3, protocols=(("range", b"?"),))
    assert driver.group.subscribed_topics() is None
    assert driver.group.is_subscribed_to("t")


def test_members_that_are_not_consumers_read_nothing() -> None:
    driver = Driver()
    driver.join(version=3, protocol_type="connect")
    assert driver.group.subscribed_topics() is None
    assert not driver.group.is_subscribed_to("t")


def test_a_group_whose_consumers_left_reads_nothing() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.leave(leader)
    assert driver.group.subscribed_topics() == frozenset()
    assert not driver.group.is_subscribed_to("t")


def test_a_stable_group_is_described_with_metadata_and_assignments() -> None:
    driver = Driver()
    (leader,) = driver.stable(1, instances=True)
    described = driver.group.describe()
    assert described[:4] == ("g", "Stable", "consumer", "range")
    assert described.members == (
        DescribedMember(leader, "i1", "client", "/127.0.0.1", READS_T, b"1"),
    )
    assert driver.group.listed() == ("g", "consumer", "Stable", "classic")


def test_a_group_between_generations_is_described_without_metadata() -> None:
    driver = Driver()
    leader, _ = driver.stable(2)
    driver.join(leader)
    described = driver.group.describe()
    assert described[:4] == ("g", "PreparingRebalance", "consumer", "")
    assert [(member.metadata, member.assignment) for member in described.members] == [
        (b"", b"1"),
        (b"", b"2"),
    ]


def test_a_group_nobody_joined_has_no_type() -> None:
    driver = Driver()
    assert driver.group.protocol_type is None
    assert driver.group.listed() == ("g", "", "Empty", "classic")


def test_a_group_comes_back_from_disk_as_it_was() -> None:
    driver = Driver()
    leader, follower = driver.stable(2, instances=True)
    again = driver.restored(driver.last_record())
    assert again.describe() == driver.group.describe()
    assert again.record() == driver.last_record()
    assert (again.leader, again.generation_id) == (leader, driver.group.generation_id)
    assert again.subscribed_topics() == frozenset({"t"})
    again.heartbeat(follower, "i2", again.generation_id, driver.now_ms)


def test_sessions_begin_anew_when_a_group_comes_back() -> None:
    driver = Driver()
    leader, _ = driver.stable(2)
    driver.pass_time(SESSION_MS - 1)
    again = Driver(driver.restored(driver.last_record()))
    again.now_ms = driver.now_ms
    again.pass_time(SESSION_MS - 1)
    again.heartbeat(leader)
    again.pass_time(1)
    assert list(again.group.members) == [leader]


def test_a_group_without_members_comes_back_empty() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.leave(leader)
    again = driver.restored(driver.last_record())
    assert (again.state, again.generation_id) == ("Empty", 2)
    assert (again.protocol_type, again.next_deadline_ms) == ("consumer", None)
    assert again.state_timestamp_ms == NOW_MS


def test_a_group_that_came_back_is_not_written_when_someone_joins() -> None:
    driver = Driver()
    driver.new_member_id()
    again = Driver(driver.restored(driver.last_record()))
    again.new_member_id()
    assert again.records == []


def test_a_record_older_than_the_rebalance_timeout_stands_in_with_the_session() -> None:
    member = ClassicMember("m", None, "c", "/h", -1, 7_000, READS_T, b"")
    record = GroupMetadata("g", "consumer", 5, "range", "m", -1, (member,))
    again = Driver().restored(record)
    assert again.members["m"].rebalance_timeout_ms == 7_000
    assert again.state_timestamp_ms == -1


def test_a_group_over_its_size_joins_again_when_it_comes_back() -> None:
    driver = Driver()
    first, second = driver.stable(2)
    again = Driver(driver.restored(driver.last_record(), max_size=1))
    assert again.group.state == "PreparingRebalance"
    assert again.is_parked(again.join(first))
    again.join(second)
    assert list(again.group.members) == [first]


def test_members_may_come_back_with_more_than_the_record_knows() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    both = (*RANGE, ("sticky", b""))
    again = type(driver.group).restore(
        driver.last_record(),
        driver.limits,
        make_member_id=driver.make_member_id,
        now_ms=driver.now_ms,
        protocols={leader: both},
    )
    assert again.members[leader].protocols == both


def test_an_assignment_that_cannot_be_written_is_void() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.join(follower)
    driver.sync(leader, {"client-1": b"new", "client-2": b"new"})
    driver.take(driver.group.write_failed(driver.now_ms))

    assert driver.group.state == "PreparingRebalance"
    assert [member.assignment for member in driver.group.members.values()] == [b"", b""]
    tickets = [driver.join(leader), driver.join(follower)]
    assert {driver.joined(ticket).generation_id for ticket in tickets} == {4}


def test_an_empty_group_that_cannot_be_written_stays_empty() -> None:
    driver = Driver()
    (leader,) = driver.stable()
    driver.leave(leader)
    driver.take(driver.group.write_failed(driver.now_ms))
    assert (driver.group.state, driver.group.generation_id) == ("Empty", 2)


def test_whoever_waits_when_a_group_dies_is_told() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    joining = driver.join(leader)
    driver.take(driver.group.die(RebalanceInProgressError("moved")))
    assert driver.join_reply(joining).member_id == leader
    assert str(driver.join_reply(joining).error) == "moved"

    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.join(follower)
    syncing = driver.sync(follower)
    driver.take(driver.group.die(RebalanceInProgressError("moved")))
    assert str(driver.sync_reply(syncing).error) == "moved"
    assert driver.group.state == "Dead"


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
