"""Who may commit, in each state of a group, and what OffsetDelete leaves, on both engines."""

from collections.abc import Callable
from typing import Any

from tests.interop.group_wire import (
    FENCED_INSTANCE,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED,
    ILLEGAL_GENERATION,
    INVALID_GROUP_ID,
    MEMBER_ID_REQUIRED,
    NONE,
    OFFSET_DELETE,
    OFFSET_FETCH,
    REBALANCE_IN_PROGRESS,
    SHORT_SESSION_MS,
    UNKNOWN_MEMBER,
    UNKNOWN_TOPIC,
    Member,
    ask,
    settle,
    state_of,
    subscription,
    versions_of,
    wait_for,
)
from tests.interop.wire import DELETE_TOPICS, Engine, WireClient

NewMember = Callable[..., Member]


def committed_offset(wire: WireClient, group_id: str, topic: str) -> int:
    groups = [{"group_id": group_id, "topics": [{"name": topic, "partition_indexes": [0]}]}]
    answer = ask(wire, OFFSET_FETCH, 9, groups=groups)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def test_a_member_commits_in_its_generation(new_member: NewMember, topic: str) -> None:
    member = new_member()
    settle([member])

    assert member.commit(topic, 1) == NONE
    assert member.commit(topic, 1, generation_id_or_member_epoch=0) == ILLEGAL_GENERATION
    assert member.commit(topic, 1, generation_id_or_member_epoch=2) == ILLEGAL_GENERATION
    assert member.commit(topic, 1, member_id="nobody") == UNKNOWN_MEMBER
    assert member.commit(topic, 1, group_instance_id="nobody") == UNKNOWN_MEMBER
    assert member.commit(topic, 1, generation_id_or_member_epoch=-1) == ILLEGAL_GENERATION


def test_nobody_else_commits_while_there_are_members(new_member: NewMember, topic: str) -> None:
    member, stranger = new_member(), new_member()
    settle([member])

    assert stranger.commit(topic, 1) == UNKNOWN_MEMBER
    assert stranger.commit(topic, 1, member_id="nobody") == UNKNOWN_MEMBER


def test_anyone_commits_to_an_empty_group_without_a_generation(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    member, stranger = new_member(), new_member()
    settle([member])
    member.leave()

    assert stranger.commit(topic, 7) == NONE
    assert stranger.commit(topic, 8, member_id="whoever") == NONE
    assert member.commit(topic, 9) == UNKNOWN_MEMBER
    assert committed_offset(wire, group_id, topic) == 8


def test_to_a_group_that_is_not_there_only_those_without_a_generation_commit(
    new_member: NewMember, topic: str
) -> None:
    stranger = new_member()

    def early(version: int) -> int:
        claims = {"generation_id_or_member_epoch": 3, "member_id": "nobody"}
        return stranger.commit(topic, 1, version=version, **claims)

    assert (early(8), early(9)) == (ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND)
    assert stranger.commit(topic, 1, member_id="nobody") == NONE


def test_a_commit_in_a_rebalance_is_taken_until_the_assignment_is_awaited(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    member, newcomer = new_member(), new_member()
    settle([member])
    assert newcomer.join().error_code == MEMBER_ID_REQUIRED
    newcomer.send_join()
    member.wait_for_heartbeat(REBALANCE_IN_PROGRESS)

    preparing = member.commit(topic, 1)
    member.send_join()
    member.joined(), newcomer.joined()
    completing = member.commit(topic, 2)

    assert state_of(wire, group_id) == "CompletingRebalance"
    assert (preparing, completing) == (NONE, REBALANCE_IN_PROGRESS)
    assert member.commit(topic, 2, generation_id_or_member_epoch=1) == ILLEGAL_GENERATION
    assert committed_offset(wire, group_id, topic) == 1


def test_a_commit_keeps_a_member_alive(engine: Engine, new_member: NewMember, topic: str) -> None:
    member = new_member(session_timeout=SHORT_SESSION_MS)
    settle([member])

    for _ in range(5):
        engine.pass_time(SHORT_SESSION_MS / 4000)
        assert member.commit(topic, 1) == NONE

    assert member.heartbeat() == NONE


def test_a_static_member_commits_with_its_own_id_only(new_member: NewMember, topic: str) -> None:
    member = new_member(instance_id="mine")
    settle([member])

    assert member.commit(topic, 1) == NONE
    assert member.commit(topic, 1, member_id="nobody") == FENCED_INSTANCE


def delete(wire: WireClient, group_id: str, *partitions: tuple[str, int]) -> Any:
    topics = [{"name": name, "partitions": [{"partition_index": at}]} for name, at in partitions]
    return ask(wire, OFFSET_DELETE, 0, group_id=group_id, topics=topics)


def told(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): int(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def test_offset_delete_has_one_version() -> None:
    assert versions_of(OFFSET_DELETE) == [0]


def test_offsets_of_an_empty_group_are_deleted(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    new_member().commit(topic, 5)

    answer = delete(wire, group_id, (topic, 0), (topic, 8), ("no-such-topic", 0))

    assert answer.error_code == NONE
    assert told(answer) == {
        (topic, 0): NONE,
        (topic, 8): UNKNOWN_TOPIC,
        ("no-such-topic", 0): UNKNOWN_TOPIC,
    }
    assert committed_offset(wire, group_id, topic) == -1


def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(
    wire: WireClient, topic: str, group_id: str
) -> None:
    missing, nameless = delete(wire, group_id, (topic, 0)), delete(wire, "", (topic, 0))

    assert (missing.error_code, missing.topics) == (GROUP_ID_NOT_FOUND, ())
    assert (nameless.error_code, nameless.topics) == (INVALID_GROUP_ID, ())


def test_offsets_of_topics_that_members_read_stay(
    wire: WireClient, new_member: NewMember, new_topic: Callable[..., str], group_id: str
) -> None:
    read, unread = new_topic(), new_topic()
    member = new_member(protocols=[{"name": "range", "metadata": subscription(read)}])
    settle([member])
    assert member.commit(read, 5) == member.commit(unread, 6) == NONE

    answer = delete(wire, group_id, (read, 0), (unread, 0))

    assert told(answer) == {(read, 0): GROUP_SUBSCRIBED, (unread, 0): NONE}
    assert committed_offset(wire, group_id, read) == 5
    assert committed_offset(wire, group_id, unread) == -1


def test_offsets_of_a_group_with_members_of_another_kind_stay(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    member = new_member(protocol_type="connect")
    settle([member])
    assert member.commit(topic, 5) == NONE

    answer = delete(wire, group_id, (topic, 0))

    assert (int(answer.error_code), answer.topics) == (68, ())
    assert committed_offset(wire, group_id, topic) == 5


def test_offsets_go_when_their_topic_is_deleted(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    new_member().commit(topic, 5)

    topics = [{"name": topic, "topic_id": None}]
    assert wire.call(DELETE_TOPICS, 6, topics=topics, timeout=10_000).responses[0].error_code == 0

    wait_for(lambda: committed_offset(wire, group_id, topic) == -1)
