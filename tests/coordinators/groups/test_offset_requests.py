from uuid import UUID

import pytest
from tests.coordinators.groups.desk import SESSION_MS, TOPIC_ID, Desk

from headrace.coordinators.groups.messages import LeavingMember, TopicShape
from headrace.coordinators.groups.offset_requests import (
    Committer,
    CommitTime,
    Result,
    commit_offsets,
    delete_group,
    delete_offsets,
    expire,
    fetch_offsets,
    forget_missing_topics,
    forget_topic,
)
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.coordinators.groups.records import GroupMetadata, OffsetCommit, Tombstone
from headrace.errors import (
    GroupError,
    GroupNotFoundError,
    GroupSubscribedError,
    GroupVersionError,
    IllegalGenerationError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
    UnknownMemberError,
)

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


def commit(
    desk: Desk, who: Committer, *offsets: OffsetToCommit, retention_ms: int = -1
) -> list[Result]:
    asked = offsets or (OffsetToCommit("t", 0, 5, topic_id=TOPIC_ID),)
    when = CommitTime(desk.now_ms, desk.now_ms)
    return desk.carry_out(
        commit_offsets(
            desk.coordinator,
            who,
            asked,
            when,
            max_metadata_bytes=10,
            retention_ms=retention_ms,
        )
    )


def offset(desk: Desk, group_id: str, topic: str = "t", partition: int = 0) -> int | None:
    found = desk.coordinator.offsets.get(group_id, topic, partition)
    return None if found is None else found.offset


def leave(desk: Desk, group_id: str, member_id: str) -> None:
    desk.carry_out(desk.coordinator.leave(group_id, [LeavingMember(member_id)], desk.now_ms))


def age(desk: Desk, group_id: str, ms: int) -> None:
    """Let time pass, without sessions, and end what is too old."""
    desk.now_ms += ms
    desk.carry_out(expire(desk.coordinator, group_id, desk.now_ms, WEEK_MS))


# --- committing


def test_anybody_may_commit_for_a_group_that_is_not_there() -> None:
    desk = Desk()

    assert commit(desk, Committer("g")) == [None]

    assert offset(desk, "g") == 5
    assert desk.coordinator.describe_classic("g").state == "Empty"


def test_a_generation_of_no_group_is_refused_in_the_words_of_the_version() -> None:
    desk = Desk()

    with pytest.raises(GroupNotFoundError):
        commit(desk, Committer("g", "m", None, 3))
    with pytest.raises(IllegalGenerationError):
        commit(desk, Committer("g", "m", None, 3, knows_epochs=False))
    assert desk.coordinator.groups() == []


def test_a_member_commits_in_its_generation_only() -> None:
    desk = Desk()
    member = desk.stable_member("g")

    commit(desk, Committer("g", member, None, 1))
    for who, error in (
        (Committer("g", member, None, 2), IllegalGenerationError),
        (Committer("g", "other", None, 1), UnknownMemberError),
        (Committer("g"), UnknownMemberError),
    ):
        with pytest.raises(error):
            commit(desk, who, OffsetToCommit("t", 0, 9))

    assert offset(desk, "g") == 5


def test_a_commit_keeps_a_classic_session() -> None:
    desk = Desk()
    member = desk.stable_member("g")

    for _ in range(3):
        desk.let_pass(SESSION_MS - 1)
        commit(desk, Committer("g", member, None, 1))

    desk.coordinator.heartbeat("g", member, None, 1, desk.now_ms)


def test_a_member_of_the_new_protocol_commits_in_its_epoch() -> None:
    desk = Desk()
    epoch = desk.beat("g", "m").member_epoch

    commit(desk, Committer("g", "m", None, epoch))

    assert offset(desk, "g") == 5
    with pytest.raises(StaleMemberEpochError):
        commit(desk, Committer("g", "m", None, epoch + 1))
    with pytest.raises(GroupVersionError):
        commit(desk, Committer("g", "m", None, epoch, knows_epochs=False))


def test_long_metadata_is_refused_for_its_partition_only() -> None:
    desk = Desk()

    taken, refused = commit(
        desk,
        Committer("g"),
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
        Committer("g"),
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
        commit(desk, Committer("g"))

    assert offset(desk, "g") is None


# --- fetching


def test_a_group_that_is_not_there_has_no_offsets() -> None:
    look_up = fetch_offsets(Desk().coordinator, "none", "m", 4)

    assert look_up("t", 0) is None


def test_a_member_of_the_new_protocol_is_checked_and_an_administrator_is_not() -> None:
    desk = Desk()
    epoch = desk.beat("g", "m").member_epoch
    commit(desk, Committer("g", "m", None, epoch))

    for member_id, its_epoch in ((None, -1), ("m", epoch)):
        found = fetch_offsets(desk.coordinator, "g", member_id, its_epoch)("t", 0)
        assert found is not None
        assert found.offset == 5
    with pytest.raises(StaleMemberEpochError):
        fetch_offsets(desk.coordinator, "g", "m", epoch + 1)
    with pytest.raises(UnknownMemberError):
        fetch_offsets(desk.coordinator, "g", "other", epoch)


# --- deleting


def test_what_a_group_reads_cannot_be_deleted_and_the_rest_can() -> None:
    desk = Desk()
    member = desk.stable_member("g")
    commit(
        desk, Committer("g", member, None, 1), OffsetToCommit("t", 0, 5), OffsetToCommit("u", 0, 6)
    )

    results = desk.carry_out(
        delete_offsets(desk.coordinator, "g", [("t", 0), ("u", 0), ("u", 9)], desk.now_ms)
    )

    assert isinstance(results["t", 0], GroupSubscribedError)
    assert results["u", 0] is results["u", 9] is None
    assert (offset(desk, "g"), offset(desk, "g", "u")) == (5, None)


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    with pytest.raises(GroupNotFoundError):
        delete_offsets(Desk().coordinator, "g", [("t", 0)], 0)


def test_an_empty_group_is_deleted_with_all_it_has() -> None:
    desk = Desk()
    member = desk.stable_member("g")
    commit(desk, Committer("g", member, None, 1))
    with pytest.raises(NonEmptyGroupError):
        delete_group(desk.coordinator, "g", desk.now_ms)
    leave(desk, "g", member)

    desk.carry_out(delete_group(desk.coordinator, "g", desk.now_ms))

    assert desk.coordinator.get("g") is None
    assert desk.log[-2:] == [
        Tombstone(OffsetCommit, ("g", "t", 0)),
        Tombstone(GroupMetadata, ("g",)),
    ]
    assert desk.restarted().coordinator.groups() == []
    with pytest.raises(GroupNotFoundError):
        delete_group(desk.coordinator, "g", desk.now_ms)


def test_a_deleted_group_of_the_new_protocol_does_not_come_back() -> None:
    desk = Desk()
    desk.beat("g", "m")
    desk.beat("g", "m", -1)

    desk.carry_out(delete_group(desk.coordinator, "g", desk.now_ms))

    assert desk.coordinator.get("g") is None
    assert desk.restarted().coordinator.groups() == []


def test_a_deleted_topic_takes_its_offsets_along_in_all_groups() -> None:
    desk = Desk()
    for group_id in ("g", "h"):
        commit(desk, Committer(group_id), OffsetToCommit("t", 0, 5), OffsetToCommit("u", 0, 6))

    for decision in forget_topic(desk.coordinator, "t", desk.now_ms):
        desk.carry_out(decision)

    for group_id in ("g", "h"):
        assert (offset(desk, group_id), offset(desk, group_id, "u")) == (None, 6)


def test_after_a_load_offsets_of_topics_that_were_deleted_or_made_anew_go() -> None:
    desk = Desk()
    commit(
        desk,
        Committer("g"),
        OffsetToCommit("t", 0, 5, topic_id=TOPIC_ID),
        OffsetToCommit("anew", 0, 6, topic_id=TOPIC_ID),
        OffsetToCommit("gone", 0, 7),
    )
    desk.topics.by_name["anew"] = TopicShape(UUID(int=99), "anew", 1)

    desk.carry_out(forget_missing_topics(desk.coordinator, "g", desk.now_ms))

    assert offset(desk, "g") == 5
    assert offset(desk, "g", "anew") is offset(desk, "g", "gone") is None


# --- expiring


def test_offsets_of_a_simple_consumer_age_from_their_commit_on() -> None:
    desk = Desk()
    commit(desk, Committer("g"))
    desk.now_ms += DAY_MS
    commit(desk, Committer("g"), OffsetToCommit("t", 1, 6))

    age(desk, "g", WEEK_MS - DAY_MS)

    assert (offset(desk, "g"), offset(desk, "g", partition=1)) == (None, 6)


def test_a_group_without_members_and_offsets_goes_with_the_last_of_them() -> None:
    desk = Desk()
    commit(desk, Committer("g"))

    age(desk, "g", WEEK_MS)

    assert desk.coordinator.get("g") is None
    assert desk.log[-1] == Tombstone(GroupMetadata, ("g",))


def test_offsets_of_an_empty_group_age_from_when_it_became_empty() -> None:
    desk = Desk()
    member = desk.stable_member("g")
    commit(desk, Committer("g", member, None, 1))
    desk.now_ms += 30 * DAY_MS
    leave(desk, "g", member)

    age(desk, "g", WEEK_MS - 1)
    assert offset(desk, "g") == 5

    age(desk, "g", 1)
    assert desk.coordinator.get("g") is None


def test_what_a_live_group_reads_never_expires() -> None:
    for desk, who in (_classic_committer(), _new_committer()):
        commit(desk, who, OffsetToCommit("t", 0, 5), OffsetToCommit("u", 0, 6))

        age(desk, "g", 10 * WEEK_MS)

        assert (offset(desk, "g"), offset(desk, "g", "u")) == (5, None)
        assert desk.coordinator.get("g") is not None


def _classic_committer() -> tuple[Desk, Committer]:
    desk = Desk()
    return desk, Committer("g", desk.stable_member("g"), None, 1)


def _new_committer() -> tuple[Desk, Committer]:
    desk = Desk()
    return desk, Committer("g", "m", None, desk.beat("g", "m").member_epoch)


def test_nothing_expires_while_a_group_rebalances() -> None:
    desk, who = _classic_committer()
    commit(desk, who, OffsetToCommit("u", 0, 6))
    assert desk.join("g", ticket="newcomer") is None

    age(desk, "g", 10 * WEEK_MS)

    assert offset(desk, "g", "u") == 6


def test_what_an_old_client_asked_for_counts_instead_of_the_brokers_retention() -> None:
    desk = Desk()
    commit(desk, Committer("g"), OffsetToCommit("t", 0, 5), retention_ms=100)
    commit(desk, Committer("g"), OffsetToCommit("t", 1, 6), retention_ms=2 * WEEK_MS)

    age(desk, "g", 100)
    assert (offset(desk, "g"), offset(desk, "g", partition=1)) == (None, 6)

    age(desk, "g", WEEK_MS)
    assert offset(desk, "g", partition=1) == 6


def test_an_empty_group_of_the_new_protocol_goes_too() -> None:
    desk = Desk()
    desk.beat("g", "m")
    desk.beat("g", "m", -1)

    age(desk, "g", 0)

    assert desk.coordinator.get("g") is None
    assert desk.restarted().coordinator.groups() == []
