"""OffsetCommit, OffsetFetch and OffsetDelete, on both engines, in every version."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.group_wire import (
    NONE,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_TOPIC,
    UNKNOWN_TOPIC_ID,
    Member,
    ask,
    committed,
    versions_of,
    wait_for,
)
from tests.interop.wire import WireClient

NewMember = Callable[..., Member]
NOTHING = (-1, -1, "", NONE)


def commit(
    wire: WireClient, group_id: str, topics: list[dict[str, Any]], *, version: int = 9, **who: Any
) -> Any:
    if version >= 10:
        topics = [{**each, "topic_id": wire.topic_id(each["name"])} for each in topics]
    identity = {"generation_id_or_member_epoch": -1, "member_id": "", **who}
    return ask(wire, OFFSET_COMMIT, version, group_id=group_id, topics=topics, **identity)


def error_of(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)


def fetch(
    wire: WireClient,
    group_id: str,
    topics: dict[str, list[int]] | None,
    *,
    version: int = 9,
    **who: Any,
) -> Any:
    """Return the group's part of the answer: `topics` and, from v2, `error_code`."""
    asked_for = None
    if topics is not None:
        asked_for = [
            {"name": name, "partition_indexes": partitions}
            | ({"topic_id": wire.topic_id(name)} if version >= 10 else {})
            for name, partitions in topics.items()
        ]
    if version < 8:
        return ask(wire, OFFSET_FETCH, version, group_id=group_id, topics=asked_for)
    groups = [{"group_id": group_id, "topics": asked_for, **who}]
    return ask(wire, OFFSET_FETCH, version, groups=groups).groups[0]


def offsets(answer: Any) -> dict[tuple[Any, int], tuple[int, int, str | None, int]]:
    """By topic and partition: offset, leader epoch, metadata, error code."""
    return {
        (getattr(topic, "name", None) or topic.topic_id, partition.partition_index): (
            partition.committed_offset,
            getattr(partition, "committed_leader_epoch", -1),
            partition.metadata,
            int(partition.error_code),
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", versions_of(OFFSET_COMMIT))
def test_what_is_committed_in_any_version_is_fetched(
    wire: WireClient, topic: str, group_id: str, version: int
) -> None:
    # v2-4 can ask for a retention of their own; -1 asks for the broker's.
    answer = commit(
        wire,
        group_id,
        committed(topic, 42, metadata="wörter", epoch=0),
        version=version,
        retention_time=-1,
    )

    assert error_of(answer) == NONE
    epoch = 0 if version >= 6 else -1
    assert offsets(fetch(wire, group_id, {topic: [0]})) == {(topic, 0): (42, epoch, "wörter", NONE)}


@pytest.mark.parametrize("version", versions_of(OFFSET_FETCH))
def test_every_version_fetches_what_is_there_and_what_is_not(
    wire: WireClient, new_topic: Callable[..., str], group_id: str, version: int
) -> None:
    topic = new_topic(partitions=2)
    commit(wire, group_id, committed(topic, 42, metadata="words", epoch=0))

    answer = fetch(wire, group_id, {topic: [0, 1, 7]}, version=version)

    name = wire.topic_id(topic) if version >= 10 else topic
    epoch = 0 if version >= 5 else -1
    assert offsets(answer) == {
        (name, 0): (42, epoch, "words", NONE),
        (name, 1): NOTHING,
        (name, 7): NOTHING,
    }
    if version >= 2:
        assert answer.error_code == NONE


@pytest.mark.parametrize("version", versions_of(OFFSET_FETCH, 2))
def test_null_topics_fetch_all_that_is_committed(
    wire: WireClient, new_topic: Callable[..., str], group_id: str, version: int
) -> None:
    one, two = new_topic(), new_topic(partitions=3)
    commit(wire, group_id, committed(one, 1) + committed(two, 2, partition=2))

    answer = fetch(wire, group_id, None, version=version)

    names = (one, two) if version < 10 else (wire.topic_id(one), wire.topic_id(two))
    assert {key: offset for key, (offset, *_) in offsets(answer).items()} == {
        (names[0], 0): 1,
        (names[1], 2): 2,
    }


@pytest.mark.parametrize("version", versions_of(OFFSET_FETCH))
def test_an_unknown_group_has_committed_nothing(
    wire: WireClient, topic: str, group_id: str, version: int
) -> None:
    answer = fetch(wire, group_id, {topic: [0]}, version=version)

    assert list(offsets(answer).values()) == [NOTHING]
    if version >= 2:
        assert fetch(wire, group_id, None, version=version).topics == ()


def test_a_topic_that_is_not_there_has_no_offset_but_no_error(
    wire: WireClient, group_id: str
) -> None:
    answer = fetch(wire, group_id, {"no-such-topic": [0]})

    assert offsets(answer) == {("no-such-topic", 0): NOTHING}


def test_an_id_that_no_topic_has_is_an_error(wire: WireClient, group_id: str) -> None:
    stranger = uuid.uuid4()
    topics = [{"topic_id": stranger, "partition_indexes": [0]}]
    groups = [{"group_id": group_id, "topics": topics}]
    fetched = ask(wire, OFFSET_FETCH, 10, groups=groups).groups[0]
    named = [{**committed("", 1)[0], "topic_id": stranger}]
    answer = ask(
        wire,
        OFFSET_COMMIT,
        10,
        group_id=group_id,
        member_id="",
        topics=named,
        generation_id_or_member_epoch=-1,
    )

    assert offsets(fetched) == {(stranger, 0): (-1, -1, "", UNKNOWN_TOPIC_ID)}
    assert (answer.topics[0].topic_id, error_of(answer)) == (stranger, UNKNOWN_TOPIC_ID)


def test_several_groups_are_fetched_in_one_request(
    wire: WireClient, topic: str, new_group: Callable[[], str]
) -> None:
    one, two = new_group(), new_group()
    commit(wire, one, committed(topic, 1))
    commit(wire, two, committed(topic, 2))
    topics = [{"name": topic, "partition_indexes": [0]}]
    groups = [{"group_id": group_id, "topics": topics} for group_id in (two, one, "")]

    answer = ask(wire, OFFSET_FETCH, 8, groups=groups)

    assert [each.group_id for each in answer.groups] == [two, one, ""]
    assert [each.topics[0].partitions[0].committed_offset for each in answer.groups[:2]] == [2, 1]
    assert [each.error_code for each in answer.groups] == [NONE, NONE, NONE]


def test_a_group_may_go_without_a_name_when_it_only_keeps_offsets(
    wire: WireClient, topic: str
) -> None:
    wait_for(lambda: error_of(commit(wire, "", committed(topic, 3))) == NONE)

    assert offsets(fetch(wire, "", {topic: [0]})) == {(topic, 0): (3, -1, "", NONE)}


def test_null_metadata_is_stored_as_none(wire: WireClient, topic: str, group_id: str) -> None:
    commit(wire, group_id, committed(topic, 5, metadata=None))

    assert offsets(fetch(wire, group_id, {topic: [0]})) == {(topic, 0): (5, -1, "", NONE)}


def test_metadata_may_have_4096_bytes(
    wire: WireClient, new_topic: Callable[..., str], group_id: str
) -> None:
    topic = new_topic(partitions=2)
    longest, too_long = "ä" * 2048, "x" * 4097

    assert error_of(commit(wire, group_id, committed(topic, 1, metadata=longest))) == NONE
    told = commit(
        wire,
        group_id,
        committed(topic, 2, metadata=too_long)
        + committed(topic, 3, partition=1, metadata="x" * 4096),
    )

    errors = [each.partitions[0].error_code for each in told.topics]
    assert errors == [OFFSET_METADATA_TOO_LARGE, NONE]
    kept = offsets(fetch(wire, group_id, {topic: [0, 1]}))
    assert (kept[topic, 0][0], kept[topic, 1][0]) == (1, 3)


def test_a_partition_that_is_named_twice_is_answered_twice(
    wire: WireClient, topic: str, group_id: str
) -> None:
    refused, taken = committed(topic, 2, metadata="x" * 4097), committed(topic, 3)

    answer = commit(wire, group_id, refused + taken)

    errors = [each.partitions[0].error_code for each in answer.topics]
    assert errors == [OFFSET_METADATA_TOO_LARGE, NONE]
    assert offsets(fetch(wire, group_id, {topic: [0]}))[topic, 0][0] == 3


def test_a_topic_or_partition_that_is_not_there_cannot_be_committed(
    wire: WireClient, topic: str, group_id: str
) -> None:
    topics = committed("no-such-topic", 1) + committed(topic, 1, partition=9) + committed(topic, 7)

    answer = commit(wire, group_id, topics)

    told = {
        (each.name, part.partition_index): int(part.error_code)
        for each in answer.topics
        for part in each.partitions
    }
    assert told == {("no-such-topic", 0): UNKNOWN_TOPIC, (topic, 9): UNKNOWN_TOPIC, (topic, 0): 0}


@pytest.mark.parametrize("offset", [-1, -2, 2**62])
def test_any_offset_may_be_committed(
    wire: WireClient, topic: str, group_id: str, offset: int
) -> None:
    assert error_of(commit(wire, group_id, committed(topic, offset))) == NONE
    assert offsets(fetch(wire, group_id, {topic: [0]}))[topic, 0][0] == offset
