import dataclasses
import datetime
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.offset_commit.v4.request import OffsetCommitRequest as OldRequest
from kio.schema.offset_commit.v10.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.at_once import at_once
from tests.broker.handlers.group_requests import (
    COMMIT,
    CONSUMER_HEARTBEAT,
    a_beat,
    a_commit,
    a_stable_member,
    topic_id_of,
)

from headrace.broker.state import BrokerState


@pytest.fixture(autouse=True)
def topic(broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))


def codes(answer: Any) -> dict[tuple[Any, int], ErrorCode]:
    return {
        (getattr(topic, "name", None) or topic.topic_id, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits_what_it_can_say(ask: Any, broker: BrokerState, version: int) -> None:
    answer = ask(COMMIT, a_commit(metadata="why"), version)

    assert codes(answer) == {("t", 0): ErrorCode.none}
    found = broker.groups.coordinator.registry.offsets.get("g", "t", 0)
    assert found is not None
    assert (found.offset, found.metadata) == (5, "why")
    assert found.leader_epoch == (2 if version >= 6 else -1)
    assert found.topic_id == topic_id_of(broker)
    assert found.expire_timestamp_ms == -1
    assert abs(found.commit_timestamp_ms - broker.clock.now_ms()) < 60_000


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_old_client_says_how_long_its_offset_shall_live(
    ask: Any, broker: BrokerState, version: int
) -> None:
    fields = {
        field.name: getattr(a_commit(), field.name)
        for field in dataclasses.fields(OldRequest)
        if field.name != "retention_time"
    }
    request = OldRequest(**fields, retention_time=datetime.timedelta(seconds=60))

    ask(COMMIT, request, version)

    found = broker.groups.coordinator.registry.offsets.get("g", "t", 0)
    assert found is not None
    assert found.expire_timestamp_ms == found.commit_timestamp_ms + 60_000


def test_the_newest_version_names_topics_by_id(ask: Any, broker: BrokerState) -> None:
    def topic(topic_id: UUID | None, *indexes: int) -> OffsetCommitRequestTopic:
        return OffsetCommitRequestTopic(
            topic_id=topic_id,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=7, committed_metadata=None
                )
                for index in indexes
            ),
        )

    topic_id, unknown = topic_id_of(broker), UUID(int=9)
    request = OffsetCommitRequest(
        group_id="g",
        member_id="",
        topics=(topic(topic_id, 0, 9), topic(unknown, 0), topic(None, 1)),
    )

    answer = ask(COMMIT, request, 10)

    assert codes(answer) == {
        (topic_id, 0): ErrorCode.none,
        (topic_id, 9): ErrorCode.unknown_topic_or_partition,
        (unknown, 0): ErrorCode.unknown_topic_id,
        (None, 1): ErrorCode.unknown_topic_id,
    }
    found = broker.groups.coordinator.registry.offsets.get("g", "t", 0)
    assert found is not None
    assert found.offset == 7


def test_what_is_not_there_cannot_be_committed(ask: Any, broker: BrokerState) -> None:
    topics = (("t", 0, 5), ("t", 2, 5), ("t", -1, 5), ("nope", 0, 5))

    answer = ask(COMMIT, a_commit(topics=topics), 9)

    found = [one.error_code for topic in answer.topics for one in topic.partitions]
    assert found == [ErrorCode.none] + [ErrorCode.unknown_topic_or_partition] * 3
    assert broker.groups.coordinator.registry.offsets.count_of("g") == 1


def test_metadata_has_a_limit(ask: Any) -> None:
    at_it = ask(COMMIT, a_commit(metadata="x" * 4096), 9)
    over_it = ask(COMMIT, a_commit(metadata="x" * 4097), 9)

    assert codes(at_it) == {("t", 0): ErrorCode.none}
    assert codes(over_it) == {("t", 0): ErrorCode.offset_metadata_too_large}


def test_a_partition_that_is_named_twice_is_answered_twice(ask: Any) -> None:
    too_long, good = a_commit(metadata="x" * 4097).topics, a_commit().topics
    missing = a_commit(topics=(("t", 7, 5), ("nope", 0, 5))).topics

    request = dataclasses.replace(a_commit(), topics=(*too_long, *missing, *good))
    answer = ask(COMMIT, request, 9)

    assert [topic.partitions[0].error_code for topic in answer.topics] == [
        ErrorCode.offset_metadata_too_large,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.none,
    ]


@pytest.mark.parametrize(
    ("group_id", "member_id", "generation_id", "version", "error_code"),
    [
        ("none", "m", 1, 9, ErrorCode.group_id_not_found),
        ("none", "m", 1, 8, ErrorCode.illegal_generation),
        ("g", "m", 1, 9, ErrorCode.unknown_member_id),
        ("g", "", -1, 9, ErrorCode.unknown_member_id),
        ("g", None, 2, 9, ErrorCode.illegal_generation),
        ("g", None, 1, 9, ErrorCode.none),
    ],
)
def test_only_members_commit_to_a_group_that_has_some(
    ask: Any,
    group_id: str,
    member_id: str | None,
    generation_id: int,
    version: int,
    error_code: ErrorCode,
) -> None:
    joined = a_stable_member(ask)
    who = joined.member_id if member_id is None else member_id

    answer = ask(COMMIT, a_commit(group_id, who, generation_id), version)

    assert codes(answer) == {("t", 0): error_code}


def test_members_of_the_new_protocol_commit_in_their_epoch(ask: Any) -> None:
    epoch = ask(CONSUMER_HEARTBEAT, a_beat()).member_epoch

    for version, its_epoch, error_code in (
        (9, epoch, ErrorCode.none),
        (9, epoch + 1, ErrorCode.stale_member_epoch),
        (8, epoch, ErrorCode.unsupported_version),
    ):
        answer = ask(COMMIT, a_commit("g", "m", its_epoch), version)
        assert codes(answer) == {("t", 0): error_code}


def test_more_offsets_than_fit_one_batch_are_all_committed(ask: Any, broker: BrokerState) -> None:
    at_once(broker.topics.create("wide", 2_500, {}))
    topic_id = broker.topics.get("wide").topic_id
    partitions = tuple(
        dataclasses.replace(a_commit().topics[0].partitions[0], partition_index=at)
        for at in range(2_501)
    )
    wide = OffsetCommitRequestTopic(topic_id=topic_id, partitions=partitions)
    request = dataclasses.replace(a_commit(), topics=(wide,))

    answer = ask(COMMIT, request, 10)

    found = [one.error_code for one in answer.topics[0].partitions]
    assert found == [ErrorCode.none] * 2_500 + [ErrorCode.unknown_topic_or_partition]
    offsets = broker.groups.coordinator.registry.offsets
    assert all(offsets.get("g", "wide", at) is not None for at in (0, 999, 1_000, 2_499))
