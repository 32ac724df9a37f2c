from typing import Any
from uuid import UUID

import pytest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState

DELETE_TOPICS = 20


def a_request(*topics: str | UUID | tuple[str | None, UUID | None]) -> DeleteTopicsRequest:
    states = []
    for topic in topics:
        if isinstance(topic, str):
            topic = (topic, None)
        elif isinstance(topic, UUID):
            topic = (None, topic)
        states.append(DeleteTopicState(name=topic[0], topic_id=topic[1]))
    return DeleteTopicsRequest(topics=tuple(states), timeout=NO_THROTTLE)


@pytest.mark.parametrize("version", VERSIONS["delete_topics"])
def test_every_version_deletes_by_name(version: int, broker: BrokerState, ask: Any) -> None:
    for name in ("a", "b", "c"):
        at_once(broker.topics.create(name, 1, {}))

    answer = ask(DELETE_TOPICS, a_request("a", "nope", "c"), version)

    codes = {result.name: result.error_code for result in answer.responses}
    assert codes == {
        "a": ErrorCode.none,
        "nope": ErrorCode.unknown_topic_or_partition,
        "c": ErrorCode.none,
    }
    assert [topic.name for topic in broker.topics.all()] == ["b"]


def test_topics_are_deleted_by_id(broker: BrokerState, ask: Any) -> None:
    topic = at_once(broker.topics.create("a", 1, {}))

    answer = ask(DELETE_TOPICS, a_request(topic.topic_id, UUID(int=9)))

    rows = {(row.name, row.topic_id, row.error_code) for row in answer.responses}
    assert rows == {
        ("a", topic.topic_id, ErrorCode.none),
        (None, UUID(int=9), ErrorCode.unknown_topic_id),
    }
    assert broker.topics.all() == []


@pytest.mark.parametrize(
    ("version", "error_code"),
    [(2, ErrorCode.invalid_request), (3, ErrorCode.topic_deletion_disabled)],
)
def test_nothing_is_deleted_when_the_operator_forbids_it(
    version: int, error_code: ErrorCode, broker: BrokerState, ask: Any
) -> None:
    at_once(broker.topics.create("a", 1, {}))
    broker.settings.set_dynamic({"delete.topic.enable": "false"})

    (result,) = ask(DELETE_TOPICS, a_request("a"), version).responses

    assert result.error_code == error_code
    assert broker.topics.get("a")


def test_contradictory_requests_delete_nothing(broker: BrokerState, ask: Any) -> None:
    topic = at_once(broker.topics.create("a", 1, {}))
    twice = a_request("a", "a")
    both = a_request(("a", topic.topic_id))
    neither = a_request((None, None))

    answers = [ask(DELETE_TOPICS, request).responses for request in (twice, both, neither)]

    assert [row.error_message for (row,) in answers] == [
        "Duplicate topic name.",
        "You may not specify both topic name and topic id.",
        "Neither topic name nor id were specified.",
    ]
    assert {row.error_code for (row,) in answers} == {ErrorCode.invalid_request}
    assert broker.topics.get("a")


def test_a_name_and_an_id_of_the_same_topic_delete_it_once(broker: BrokerState, ask: Any) -> None:
    topic = at_once(broker.topics.create("a", 1, {}))

    answer = ask(DELETE_TOPICS, a_request(topic.topic_id, "a"))

    codes = [row.error_code for row in answer.responses]
    assert sorted(codes) == [ErrorCode.none, ErrorCode.invalid_request]
    assert broker.topics.all() == []
