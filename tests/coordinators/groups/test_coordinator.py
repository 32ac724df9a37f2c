import pytest
from tests.coordinators.groups.desk import SESSION_MS, Desk

from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.messages import LeavingMember
from headrace.coordinators.groups.offset_requests import Committer, CommitTime, commit_offsets
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.coordinators.groups.records import (
    ConsumerGroupMetadata,
    GroupMetadata,
    TargetAssignmentEpoch,
    Tombstone,
)
from headrace.errors import (
    CoordinatorNotAvailableError,
    GroupNotFoundError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    RebalanceInProgressError,
    UnknownMemberError,
)


def commit(desk: Desk, group_id: str) -> None:
    when = CommitTime(desk.now_ms, desk.now_ms)
    offsets = [OffsetToCommit("t", 0, 5)]
    desk.carry_out(
        commit_offsets(
            desk.coordinator, Committer(group_id), offsets, when, max_metadata_bytes=4096
        )
    )


def test_a_first_join_makes_a_classic_group_and_a_first_beat_one_of_the_new_protocol() -> None:
    desk = Desk()

    member = desk.stable_member("old")
    reply = desk.beat("new", "m")

    assert isinstance(desk.coordinator.get("old"), ClassicGroup)
    assert isinstance(desk.coordinator.get("new"), ConsumerGroup)
    desk.coordinator.heartbeat("old", member, None, 1, desk.now_ms)
    assert desk.beat("new", "m", reply.member_epoch).member_epoch == reply.member_epoch


def test_who_speaks_of_no_group_is_not_known() -> None:
    desk = Desk()

    for group_id, error in (("", InvalidGroupIdError), ("none", UnknownMemberError)):
        with pytest.raises(error):
            desk.coordinator.heartbeat(group_id, "m", None, 1, desk.now_ms)
        with pytest.raises(error):
            desk.coordinator.leave(group_id, [LeavingMember("m")], desk.now_ms)
        with pytest.raises(error):
            desk.join(group_id, member_id="m")
    assert desk.coordinator.groups() == []


def test_a_refused_first_join_leaves_no_group_behind() -> None:
    desk = Desk()
    limits = desk.surroundings.classic_limits()._replace(max_session_timeout_ms=SESSION_MS - 1)
    desk.coordinator.surroundings = desk.surroundings._replace(classic_limits=lambda: limits)

    reply = desk.join("g")

    assert reply is not None
    assert isinstance(reply.error, InvalidSessionTimeoutError)
    assert desk.coordinator.groups() == []
    assert desk.log == []


def test_a_session_without_heartbeats_ends_and_one_with_them_does_not() -> None:
    desk = Desk()
    silent, alive = desk.stable_member("silent"), desk.stable_member("alive")

    desk.let_pass(SESSION_MS - 1)
    desk.coordinator.heartbeat("alive", alive, None, 1, desk.now_ms)
    desk.let_pass(SESSION_MS - 1)

    with pytest.raises(UnknownMemberError):
        desk.coordinator.heartbeat("silent", silent, None, 1, desk.now_ms)
    desk.coordinator.heartbeat("alive", alive, None, 1, desk.now_ms)


def test_a_silent_member_of_the_new_protocol_is_fenced() -> None:
    desk = Desk()
    epoch = desk.beat("g", "m").member_epoch

    desk.let_pass(SESSION_MS + 1)

    with pytest.raises(UnknownMemberError):
        desk.beat("g", "m", epoch)
    group = desk.coordinator.get("g")
    assert group is not None
    assert group.is_empty


def test_groups_of_both_kinds_come_back_from_the_log() -> None:
    desk = Desk()
    member = desk.stable_member("old")
    epoch = desk.beat("new", "m").member_epoch
    commit(desk, "simple")

    restarted = desk.restarted()

    restarted.coordinator.heartbeat("old", member, None, 1, restarted.now_ms)
    assert restarted.beat("new", "m", epoch).member_epoch == epoch
    simple = restarted.coordinator.get("simple")
    assert isinstance(simple, ClassicGroup)
    assert simple.is_empty
    assert {group.group_id for group in restarted.coordinator.groups()} == {"old", "new", "simple"}


def test_the_order_in_which_a_compacted_log_has_its_records_does_not_matter() -> None:
    desk = Desk()
    desk.beat("g", "m")
    wanted = desk.coordinator.describe_consumer("g")

    for records in (desk.log, desk.log[::-1]):
        other = Desk()
        other.coordinator.apply_all(records, other.now_ms)
        other.coordinator.loaded(["g"], other.now_ms)
        assert other.coordinator.describe_consumer("g") == wanted


def test_what_is_left_of_a_group_that_is_gone_makes_none() -> None:
    desk = Desk()
    desk.beat("g", "m")
    targets = [one for one in desk.log if isinstance(one, TargetAssignmentEpoch)]

    other = Desk()
    other.coordinator.apply_all(targets, other.now_ms)
    other.coordinator.loaded(["g"], other.now_ms)

    assert targets
    assert other.coordinator.groups() == []


def test_sessions_start_anew_after_a_restart() -> None:
    desk = Desk()
    member, epoch = desk.stable_member("old"), desk.beat("new", "m").member_epoch
    desk.now_ms += 3 * SESSION_MS

    restarted = desk.restarted()
    restarted.let_pass(SESSION_MS - 1)

    restarted.coordinator.heartbeat("old", member, None, 1, restarted.now_ms)
    assert restarted.beat("new", "m", epoch).member_epoch == epoch


def test_who_does_not_come_back_after_a_restart_is_let_go() -> None:
    desk = Desk()
    desk.stable_member("old")
    desk.beat("new", "m")

    restarted = desk.restarted()
    restarted.let_pass(SESSION_MS + 1)

    assert all(group.is_empty for group in restarted.coordinator.groups())


def test_a_write_that_fails_changes_nothing_in_a_group_of_the_new_protocol() -> None:
    desk = Desk()
    desk.is_disk_full = True

    with pytest.raises(CoordinatorNotAvailableError):
        desk.beat("g", "m")
    assert desk.coordinator.get("g") is None

    desk.is_disk_full = False
    assert desk.beat("g", "m").member_epoch > 0


def test_a_first_join_that_is_not_written_leaves_no_group_behind() -> None:
    desk = Desk()
    desk.is_disk_full = True

    with pytest.raises(CoordinatorNotAvailableError):
        desk.join("g")

    assert desk.coordinator.get("g") is None
    assert isinstance(desk.answers["join"].error, CoordinatorNotAvailableError)


def test_a_classic_member_that_is_not_written_leaves_the_empty_group_as_it_was() -> None:
    desk = Desk()
    desk.beat("g", "m")
    desk.beat("g", "m", -1)
    desk.is_disk_full = True

    with pytest.raises(CoordinatorNotAvailableError):
        desk.join("g")

    assert isinstance(desk.coordinator.get("g"), ConsumerGroup)


def test_a_write_that_fails_sends_classic_members_to_join_again() -> None:
    desk = Desk()
    joined = desk.join("g")
    assert joined is not None

    desk.is_disk_full = True
    with pytest.raises(CoordinatorNotAvailableError):
        desk.sync("g", joined)

    desk.is_disk_full = False
    with pytest.raises(RebalanceInProgressError):
        desk.coordinator.heartbeat("g", joined.member_id, None, joined.generation_id, desk.now_ms)


def test_each_kind_is_described_by_its_own_request_only() -> None:
    desk = Desk()
    desk.stable_member("old")
    desk.beat("new", "m")

    assert desk.coordinator.describe_classic("old").state == "Stable"
    assert desk.coordinator.describe_consumer("new").members[0].member_id == "m"
    for group_id, words in (("new", "is not a classic group"), ("none", "not found")):
        with pytest.raises(GroupNotFoundError, match=words):
            desk.coordinator.describe_classic(group_id)
    for group_id, words in (("old", "is not a consumer group"), ("none", "not found")):
        with pytest.raises(GroupNotFoundError, match=words):
            desk.coordinator.describe_consumer(group_id)


def test_only_who_joins_may_be_of_a_group_that_is_not_there() -> None:
    desk = Desk()
    desk.stable_member("old")

    with pytest.raises(GroupNotFoundError, match="Consumer group none not found"):
        desk.beat("none", "m", 3)
    with pytest.raises(GroupNotFoundError, match="Group none not found"):
        desk.beat("none", "m", -1)
    with pytest.raises(GroupNotFoundError, match="is not a consumer group"):
        desk.beat("old", "m", 3)


def test_a_classic_group_turns_into_one_of_the_new_protocol_with_all_its_members() -> None:
    desk = Desk()
    member = desk.stable_member("g")

    desk.beat("g", "m")

    described = desk.coordinator.describe_consumer("g")
    assert {one.member_id for one in described.members} == {member, "m"}
    assert Tombstone(GroupMetadata, ("g",)) in desk.log
    restarted = desk.restarted().coordinator.describe_consumer("g")
    assert {one.member_id for one in restarted.members} == {member, "m"}


def test_a_join_that_waits_is_sent_away_when_its_group_changes_protocol() -> None:
    desk = Desk()
    desk.stable_member("g")
    assert desk.join("g", ticket="waits") is None

    desk.beat("g", "m")

    reply = desk.answers["waits"]
    assert isinstance(reply.error, RebalanceInProgressError)


def test_the_last_member_of_the_new_protocol_leaves_a_classic_group_behind() -> None:
    desk = Desk()
    member = desk.stable_member("g")
    desk.beat("g", "m")

    desk.beat("g", "m", -1)

    group = desk.coordinator.get("g")
    assert isinstance(group, ClassicGroup)
    assert set(group.members) == {member}
    restarted = desk.restarted().coordinator.get("g")
    assert isinstance(restarted, ClassicGroup)
    assert set(restarted.members) == {member}


def test_an_empty_group_of_the_new_protocol_is_taken_over_by_a_classic_member() -> None:
    desk = Desk()
    epoch = desk.beat("g", "m").member_epoch
    assert epoch
    desk.beat("g", "m", -1)

    desk.stable_member("g")

    assert Tombstone(ConsumerGroupMetadata, ("g",)) in desk.log
    assert isinstance(desk.coordinator.get("g"), ClassicGroup)
    assert isinstance(desk.restarted().coordinator.get("g"), ClassicGroup)


def test_leaving_ends_membership_in_groups_of_both_kinds() -> None:
    desk = Desk()
    member = desk.stable_member("old")
    desk.beat("new", "m")

    for group_id, member_id in (("old", member), ("new", "m")):
        leaving = [LeavingMember(member_id), LeavingMember("nobody")]
        results = desk.carry_out(desk.coordinator.leave(group_id, leaving, desk.now_ms))
        assert results[0].error is None
        assert isinstance(results[1].error, UnknownMemberError)
        group = desk.coordinator.get(group_id)
        assert group is not None
        assert group.is_empty
