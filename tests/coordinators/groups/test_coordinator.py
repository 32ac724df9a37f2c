from uuid import UUID

import pytest
from tests.coordinators.groups.desk import SESSION_MS, TOPIC_ID, Desk

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    GroupError,
    GroupNotFoundError,
    GroupSubscribedError,
    GroupVersionError,
    IllegalGenerationError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.messages import (
    CommitTime,
    LeavingMember,
    OffsetCommitter,
    TopicShape,
)
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.coordinators.groups.records import (
    ConsumerGroupMetadata,
    GroupMetadata,
    OffsetCommit,
    TargetAssignmentEpoch,
    Tombstone,
)


def commit_to(desk: Desk, group_id: str) -> None:
    when = CommitTime(desk.now_ms, desk.now_ms)
    offsets = [OffsetToCommit("t", 0, 5)]
    desk.carry_out(
        desk.coordinator.commit_offsets(
            OffsetCommitter(group_id), offsets, when, max_metadata_bytes=4096
        )
    )


def test_a_first_join_makes_a_classic_group_and_a_first_beat_one_of_the_new_protocol() -> None:
    desk = Desk()

    member = desk.stable_member("old")
    reply = desk.beat("new", "m")

    assert isinstance(desk.coordinator.registry.by_id.get("old"), ClassicGroup)
    assert isinstance(desk.coordinator.registry.by_id.get("new"), ConsumerGroup)
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
    assert desk.coordinator.registry.groups() == []


def test_a_refused_first_join_leaves_no_group_behind() -> None:
    desk = Desk()
    limits = desk.environment.classic_limits()._replace(max_session_timeout_ms=SESSION_MS - 1)
    desk.coordinator.registry.environment = desk.environment._replace(classic_limits=lambda: limits)

    reply = desk.join("g")

    assert reply is not None
    assert isinstance(reply.error, InvalidSessionTimeoutError)
    assert desk.coordinator.registry.groups() == []
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
    group = desk.coordinator.registry.by_id.get("g")
    assert group is not None
    assert group.is_empty


def test_groups_of_both_kinds_come_back_from_the_log() -> None:
    desk = Desk()
    member = desk.stable_member("old")
    epoch = desk.beat("new", "m").member_epoch
    commit_to(desk, "simple")

    restarted = desk.restarted()

    restarted.coordinator.heartbeat("old", member, None, 1, restarted.now_ms)
    assert restarted.beat("new", "m", epoch).member_epoch == epoch
    simple = restarted.coordinator.registry.by_id.get("simple")
    assert isinstance(simple, ClassicGroup)
    assert simple.is_empty
    assert {group.group_id for group in restarted.coordinator.registry.groups()} == {
        "old",
        "new",
        "simple",
    }


def test_the_order_in_which_a_compacted_log_has_its_records_does_not_matter() -> None:
    desk = Desk()
    desk.beat("g", "m")
    wanted = desk.coordinator.describe_consumer("g")

    for records in (desk.log, desk.log[::-1]):
        other = Desk()
        other.coordinator.registry.apply_all(records, other.now_ms)
        other.coordinator.registry.loaded(["g"], other.now_ms)
        assert other.coordinator.describe_consumer("g") == wanted


def test_what_is_left_of_a_group_that_is_gone_makes_none() -> None:
    desk = Desk()
    desk.beat("g", "m")
    targets = [one for one in desk.log if isinstance(one, TargetAssignmentEpoch)]

    other = Desk()
    other.coordinator.registry.apply_all(targets, other.now_ms)
    other.coordinator.registry.loaded(["g"], other.now_ms)

    assert targets
    assert other.coordinator.registry.groups() == []


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

    assert all(group.is_empty for group in restarted.coordinator.registry.groups())


def test_a_write_that_fails_changes_nothing_in_a_group_of_the_new_protocol() -> None:
    desk = Desk()
    desk.is_disk_full = True

    with pytest.raises(CoordinatorNotAvailableError):
        desk.beat("g", "m")
    assert desk.coordinator.registry.by_id.get("g") is None

    desk.is_disk_full = False
    assert desk.beat("g", "m").member_epoch > 0


def test_a_first_join_that_is_not_written_leaves_no_group_behind() -> None:
    desk = Desk()
    desk.is_disk_full = True

    with pytest.raises(CoordinatorNotAvailableError):
        desk.join("g")

    assert desk.coordinator.registry.by_id.get("g") is None
    assert isinstance(desk.answers["join"].error, CoordinatorNotAvailableError)


def test_a_classic_member_that_is_not_written_leaves_the_empty_group_as_it_was() -> None:
    desk = Desk()
    desk.beat("g", "m")
    desk.beat("g", "m", -1)
    desk.is_disk_full = True

    with pytest.raises(CoordinatorNotAvailableError):
        desk.join("g")

    assert isinstance(desk.coordinator.registry.by_id.get("g"), ConsumerGroup)


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

    group = desk.coordinator.registry.by_id.get("g")
    assert isinstance(group, ClassicGroup)
    assert set(group.members) == {member}
    restarted = desk.restarted().coordinator.registry.by_id.get("g")
    assert isinstance(restarted, ClassicGroup)
    assert set(restarted.members) == {member}


def test_an_empty_group_of_the_new_protocol_is_taken_over_by_a_classic_member() -> None:
    desk = Desk()
    epoch = desk.beat("g", "m").member_epoch
    assert epoch
    desk.beat("g", "m", -1)

    desk.stable_member("g")

    assert Tombstone(ConsumerGroupMetadata, ("g",)) in desk.log
    assert isinstance(desk.coordinator.registry.by_id.get("g"), ClassicGroup)
    assert isinstance(desk.restarted().coordinator.registry.by_id.get("g"), ClassicGroup)


def test_leaving_ends_membership_in_groups_of_both_kinds() -> None:
    desk = Desk()
    member = desk.stable_member("old")
    desk.beat("new", "m")

    for group_id, member_id in (("old", member), ("new", "m")):
        leaving = [LeavingMember(member_id), LeavingMember("nobody")]
        results = desk.carry_out(desk.coordinator.leave(group_id, leaving, desk.now_ms))
        assert results[0].error is None
        assert isinstance(results[1].error, UnknownMemberError)
        group = desk.coordinator.registry.by_id.get(group_id)
        assert group is not None
        assert group.is_empty


DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


def commit(
    desk: Desk, who: OffsetCommitter, *offsets: OffsetToCommit, retention_ms: int = -1
) -> list[GroupError | None]:
    asked = offsets or (OffsetToCommit("t", 0, 5, topic_id=TOPIC_ID),)
    when = CommitTime(desk.now_ms, desk.now_ms)
    return desk.carry_out(
        desk.coordinator.commit_offsets(
            who,
            asked,
            when,
            max_metadata_bytes=10,
            retention_ms=retention_ms,
        )
    )


def offset(desk: Desk, group_id: str, topic: str = "t", partition: int = 0) -> int | None:
    found = desk.coordinator.registry.offsets.get(group_id, topic, partition)
    return None if found is None else found.offset


def leave(desk: Desk, group_id: str, member_id: str) -> None:
    desk.carry_out(desk.coordinator.leave(group_id, [LeavingMember(member_id)], desk.now_ms))


def age(desk: Desk, group_id: str, ms: int) -> None:
    """Let time pass, without sessions, and end what is too old."""
    desk.now_ms += ms
    desk.carry_out(desk.coordinator.expire(group_id, desk.now_ms, WEEK_MS))


# --- committing


def test_anybody_may_commit_for_a_group_that_is_not_there() -> None:
    desk = Desk()

    assert commit(desk, OffsetCommitter("g")) == [None]

    assert offset(desk, "g") == 5
    assert desk.coordinator.describe_classic("g").state == "Empty"


def test_a_generation_of_no_group_is_refused_in_the_words_of_the_version() -> None:
    desk = Desk()

    with pytest.raises(GroupNotFoundError):
        commit(desk, OffsetCommitter("g", "m", None, 3))
    with pytest.raises(IllegalGenerationError):
        commit(desk, OffsetCommitter("g", "m", None, 3, knows_epochs=False))
    assert desk.coordinator.registry.groups() == []


def test_a_member_commits_in_its_generation_only() -> None:
    desk = Desk()
    member = desk.stable_member("g")

    commit(desk, OffsetCommitter("g", member, None, 1))
    for who, error in (
        (OffsetCommitter("g", member, None, 2), IllegalGenerationError),
        (OffsetCommitter("g", "other", None, 1), UnknownMemberError),
        (OffsetCommitter("g"), UnknownMemberError),
    ):
        with pytest.raises(error):
            commit(desk, who, OffsetToCommit("t", 0, 9))

    assert offset(desk, "g") == 5


def test_a_commit_keeps_a_classic_session() -> None:
    desk = Desk()
    member = desk.stable_member("g")

    for _ in range(3):
        desk.let_pass(SESSION_MS - 1)
        commit(desk, OffsetCommitter("g", member, None, 1))

    desk.coordinator.heartbeat("g", member, None, 1, desk.now_ms)


def test_a_member_of_the_new_protocol_commits_in_its_epoch() -> None:
    desk = Desk()
    epoch = desk.beat("g", "m").member_epoch

    commit(desk, OffsetCommitter("g", "m", None, epoch))

    assert offset(desk, "g") == 5
    with pytest.raises(StaleMemberEpochError):
        commit(desk, OffsetCommitter("g", "m", None, epoch + 1))
    with pytest.raises(GroupVersionError):
        commit(desk, OffsetCommitter("g", "m", None, epoch, knows_epochs=False))


def test_long_metadata_is_refused_for_its_partition_only() -> None:
    desk = Desk()

    taken, refused = commit(
        desk,
        OffsetCommitter("g"),
        OffsetToCommit("t", 0, 1, metadata="x" * 10),
        OffsetToCommit("t", 1, 1, metadata="x" * 11),
    )

    assert taken is None
    assert isinstance(refused, OffsetMetadataTooLargeError)
    assert (offset(desk, "g"), offset(desk, "g", partition=1)) == (1, None)


def test_a_partition_named_again_is_judged_anew() -> None:
    desk = Desk()
    too_long = OffsetToCommit("t", 0, 9, metadata="x" * 11)

    results = commit(
        desk,
        OffsetCommitter("g"),
        too_long,
        OffsetToCommit("t", 0, 1),
        OffsetToCommit("t", 0, 2),
        too_long,
    )

    assert [result is None for result in results] == [False, True, True, False]
    assert offset(desk, "g") == 2


def test_a_commit_that_is_not_written_is_not_seen() -> None:
    desk = Desk()
    desk.is_disk_full = True

    with pytest.raises(GroupError):
        commit(desk, OffsetCommitter("g"))

    assert offset(desk, "g") is None


# --- fetching


def test_a_group_that_is_not_there_has_no_offsets() -> None:
    look_up = Desk().coordinator.fetch_offsets("none", "m", 4)

    assert look_up("t", 0) is None


def test_a_member_of_the_new_protocol_is_checked_and_an_administrator_is_not() -> None:
    desk = Desk()
    epoch = desk.beat("g", "m").member_epoch
    commit(desk, OffsetCommitter("g", "m", None, epoch))

    for member_id, its_epoch in ((None, -1), ("m", epoch)):
        found = desk.coordinator.fetch_offsets("g", member_id, its_epoch)("t", 0)
        assert found is not None
        assert found.offset == 5
    with pytest.raises(StaleMemberEpochError):
        desk.coordinator.fetch_offsets("g", "m", epoch + 1)
    with pytest.raises(UnknownMemberError):
        desk.coordinator.fetch_offsets("g", "other", epoch)


# --- deleting


def test_what_a_group_reads_cannot_be_deleted_and_the_rest_can() -> None:
    desk = Desk()
    member = desk.stable_member("g")
    commit(
        desk,
        OffsetCommitter("g", member, None, 1),
        OffsetToCommit("t", 0, 5),
        OffsetToCommit("u", 0, 6),
    )

    results = desk.carry_out(
        desk.coordinator.delete_offsets("g", [("t", 0), ("u", 0), ("u", 9)], desk.now_ms)
    )

    assert isinstance(results["t", 0], GroupSubscribedError)
    assert results["u", 0] is results["u", 9] is None
    assert (offset(desk, "g"), offset(desk, "g", "u")) == (5, None)


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    with pytest.raises(GroupNotFoundError):
        Desk().coordinator.delete_offsets("g", [("t", 0)], 0)


def test_an_empty_group_is_deleted_with_all_it_has() -> None:
    desk = Desk()
    member = desk.stable_member("g")
    commit(desk, OffsetCommitter("g", member, None, 1))
    with pytest.raises(NonEmptyGroupError):
        desk.coordinator.delete_group("g", desk.now_ms)
    leave(desk, "g", member)

    desk.carry_out(desk.coordinator.delete_group("g", desk.now_ms))

    assert desk.coordinator.registry.by_id.get("g") is None
    assert desk.log[-2:] == [
        Tombstone(OffsetCommit, ("g", "t", 0)),
        Tombstone(GroupMetadata, ("g",)),
    ]
    assert desk.restarted().coordinator.registry.groups() == []
    with pytest.raises(GroupNotFoundError):
        desk.coordinator.delete_group("g", desk.now_ms)


def test_a_deleted_group_of_the_new_protocol_does_not_come_back() -> None:
    desk = Desk()
    desk.beat("g", "m")
    desk.beat("g", "m", -1)

    desk.carry_out(desk.coordinator.delete_group("g", desk.now_ms))

    assert desk.coordinator.registry.by_id.get("g") is None
    assert desk.restarted().coordinator.registry.groups() == []


def test_a_deleted_topic_takes_its_offsets_along_in_all_groups() -> None:
    desk = Desk()
    for group_id in ("g", "h"):
        commit(
            desk, OffsetCommitter(group_id), OffsetToCommit("t", 0, 5), OffsetToCommit("u", 0, 6)
        )

    for decision in desk.coordinator.forget_topic("t", desk.now_ms):
        desk.carry_out(decision)

    for group_id in ("g", "h"):
        assert (offset(desk, group_id), offset(desk, group_id, "u")) == (None, 6)


def test_after_a_load_offsets_of_topics_that_were_deleted_or_made_anew_go() -> None:
    desk = Desk()
    commit(
        desk,
        OffsetCommitter("g"),
        OffsetToCommit("t", 0, 5, topic_id=TOPIC_ID),
        OffsetToCommit("anew", 0, 6, topic_id=TOPIC_ID),
        OffsetToCommit("gone", 0, 7),
    )
    desk.topics.by_name["anew"] = TopicShape(UUID(int=99), "anew", 1)

    desk.carry_out(desk.coordinator.forget_missing_topics("g", desk.now_ms))

    assert offset(desk, "g") == 5
    assert offset(desk, "g", "anew") is offset(desk, "g", "gone") is None


# --- expiring


def test_offsets_of_a_simple_consumer_age_from_their_commit_on() -> None:
    desk = Desk()
    commit(desk, OffsetCommitter("g"))
    desk.now_ms += DAY_MS
    commit(desk, OffsetCommitter("g"), OffsetToCommit("t", 1, 6))

    age(desk, "g", WEEK_MS - DAY_MS)

    assert (offset(desk, "g"), offset(desk, "g", partition=1)) == (None, 6)


def test_a_group_without_members_and_offsets_goes_with_the_last_of_them() -> None:
    desk = Desk()
    commit(desk, OffsetCommitter("g"))

    age(desk, "g", WEEK_MS)

    assert desk.coordinator.registry.by_id.get("g") is None
    assert desk.log[-1] == Tombstone(GroupMetadata, ("g",))


def test_offsets_of_an_empty_group_age_from_when_it_became_empty() -> None:
    desk = Desk()
    member = desk.stable_member("g")
    commit(desk, OffsetCommitter("g", member, None, 1))
    desk.now_ms += 30 * DAY_MS
    leave(desk, "g", member)

    age(desk, "g", WEEK_MS - 1)
    assert offset(desk, "g") == 5

    age(desk, "g", 1)
    assert desk.coordinator.registry.by_id.get("g") is None


def test_what_a_live_group_reads_never_expires() -> None:
    for desk, who in (_classic_committer(), _new_committer()):
        commit(desk, who, OffsetToCommit("t", 0, 5), OffsetToCommit("u", 0, 6))

        age(desk, "g", 10 * WEEK_MS)

        assert (offset(desk, "g"), offset(desk, "g", "u")) == (5, None)
        assert desk.coordinator.registry.by_id.get("g") is not None


def _classic_committer() -> tuple[Desk, OffsetCommitter]:
    desk = Desk()
    return desk, OffsetCommitter("g", desk.stable_member("g"), None, 1)


def _new_committer() -> tuple[Desk, OffsetCommitter]:
    desk = Desk()
    return desk, OffsetCommitter("g", "m", None, desk.beat("g", "m").member_epoch)


def test_nothing_expires_while_a_group_rebalances() -> None:
    desk, who = _classic_committer()
    commit(desk, who, OffsetToCommit("u", 0, 6))
    assert desk.join("g", ticket="newcomer") is None

    age(desk, "g", 10 * WEEK_MS)

    assert offset(desk, "g", "u") == 6


def test_what_an_old_client_asked_for_counts_instead_of_the_brokers_retention() -> None:
    desk = Desk()
    commit(desk, OffsetCommitter("g"), OffsetToCommit("t", 0, 5), retention_ms=100)
    commit(desk, OffsetCommitter("g"), OffsetToCommit("t", 1, 6), retention_ms=2 * WEEK_MS)

    age(desk, "g", 100)
    assert (offset(desk, "g"), offset(desk, "g", partition=1)) == (None, 6)

    age(desk, "g", WEEK_MS)
    assert offset(desk, "g", partition=1) == 6


def test_an_empty_group_of_the_new_protocol_goes_too() -> None:
    desk = Desk()
    desk.beat("g", "m")
    desk.beat("g", "m", -1)

    age(desk, "g", 0)

    assert desk.coordinator.registry.by_id.get("g") is None
    assert desk.restarted().coordinator.registry.groups() == []
