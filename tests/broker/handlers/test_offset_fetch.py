from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.offset_fetch.v7.request import OffsetFetchRequest as OneGroupRequest
from kio.schema.offset_fetch.v7.request import OffsetFetchRequestTopic
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest as ByIdRequest
from kio.schema.offset_fetch.v10.request import OffsetFetchRequestGroup as ByIdGroup
from kio.schema.offset_fetch.v10.request import OffsetFetchRequestTopics as ByIdTopics
from tests.at_once import at_once
from tests.broker.handlers.group_requests import (
    COMMIT,
    CONSUMER_HEARTBEAT,
    FETCH,
    a_beat,
    a_commit,
    topic_id_of,
)

from headrace.broker.state import BrokerState


@pytest.fixture(autouse=True)
def committed(ask: Any, broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))
    ask(COMMIT, a_commit(metadata="why"), 9)


def found(topics: Any) -> dict[tuple[str, int], tuple[int, str, ErrorCode]]:
    return {
        (topic.name, one.partition_index): (one.committed_offset, one.metadata, one.error_code)
        for topic in topics
        for one in topic.partitions
    }


def one_group(group_id: str, topics: Any = (("t", (0, 1)),)) -> OneGroupRequest:
    named = (
        None
        if topics is None
        else tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics
        )
    )
    return OneGroupRequest(group_id=group_id, topics=named, require_stable=True)


@pytest.mark.parametrize("version", range(1, 8))
def test_a_group_asks_for_what_it_has_committed(ask: Any, version: int) -> None:
    answer = ask(FETCH, one_group("g"), version)

    assert found(answer.topics) == {
        ("t", 0): (5, "why", ErrorCode.none),
        ("t", 1): (-1, "", ErrorCode.none),
    }
    if version >= 2:
        assert answer.error_code == ErrorCode.none
    if version >= 5:
        assert answer.topics[0].partitions[0].committed_leader_epoch == 2


@pytest.mark.parametrize("version", range(2, 8))
def test_no_topics_means_all(ask: Any, version: int) -> None:
    assert found(ask(FETCH, one_group("g", None), version).topics) == {
        ("t", 0): (5, "why", ErrorCode.none)
    }
    assert ask(FETCH, one_group("none", None), version).topics == ()


@pytest.mark.parametrize("version", range(1, 8))
def test_an_unknown_group_or_topic_is_no_error(ask: Any, version: int) -> None:
    nothing = (-1, "", ErrorCode.none)

    answer = ask(FETCH, one_group("none", (("t", (0,)), ("nope", (3,)))), version)

    assert found(answer.topics) == {("t", 0): nothing, ("nope", 3): nothing}


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups_are_answered_at_once(ask: Any, version: int) -> None:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(group_id="g", topics=topics),
            OffsetFetchRequestGroup(group_id="g", topics=None),
            OffsetFetchRequestGroup(group_id="none", topics=topics),
        )
    )

    groups = ask(FETCH, request, version).groups

    assert [one.group_id for one in groups] == ["g", "g", "none"]
    assert {one.error_code for one in groups} == {ErrorCode.none}
    offsets = [found(one.topics)["t", 0][0] for one in groups]
    assert offsets == [5, 5, -1]


def test_the_newest_version_names_topics_by_id(ask: Any, broker: BrokerState) -> None:
    topic_id, unknown = topic_id_of(broker), UUID(int=9)
    topics = (
        ByIdTopics(topic_id=topic_id, partition_indexes=(0, 1)),
        ByIdTopics(topic_id=unknown, partition_indexes=(0,)),
    )
    request = ByIdRequest(
        groups=(
            ByIdGroup(group_id="g", topics=topics),
            ByIdGroup(group_id="g", topics=None),
        )
    )

    some, everything = ask(FETCH, request, 10).groups

    assert [
        (topic.topic_id, one.partition_index, one.committed_offset, one.error_code)
        for topic in some.topics
        for one in topic.partitions
    ] == [
        (topic_id, 0, 5, ErrorCode.none),
        (topic_id, 1, -1, ErrorCode.none),
        (unknown, 0, -1, ErrorCode.unknown_topic_id),
    ]
    assert [topic.topic_id for topic in everything.topics] == [topic_id]


def test_a_member_of_the_new_protocol_must_be_in_its_epoch(ask: Any) -> None:
    epoch = ask(CONSUMER_HEARTBEAT, a_beat("new")).member_epoch
    request = OffsetFetchRequest(
        groups=tuple(
            OffsetFetchRequestGroup(
                group_id="new", member_id=member_id, member_epoch=its_epoch, topics=None
            )
            for member_id, its_epoch in (("m", epoch), ("m", epoch + 1), ("other", epoch))
        )
    )

    groups = ask(FETCH, request, 9).groups

    assert [one.error_code for one in groups] == [
        ErrorCode.none,
        ErrorCode.stale_member_epoch,
        ErrorCode.unknown_member_id,
    ]
