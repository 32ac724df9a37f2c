from typing import Any

import pytest
from kio.schema.describe_topic_partitions.v0.request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kio.schema.errors import ErrorCode
from tests.at_once import at_once

from headrace.broker.state import BrokerState

DESCRIBE_TOPIC_PARTITIONS = 75


@pytest.fixture(autouse=True)
def _topics(broker: BrokerState) -> None:
    for name in ("b", "a", "c"):
        at_once(broker.topics.create(name, 3, {}))


def a_request(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def rows_of(answer: Any) -> list[tuple[str, list[int]]]:
    return [
        (topic.name, [row.partition_index for row in topic.partitions]) for topic in answer.topics
    ]


def cursor_of(answer: Any) -> tuple[str, int] | None:
    cursor = answer.next_cursor
    return cursor and (cursor.topic_name, cursor.partition_index)


def test_no_names_ask_for_all_topics_in_order(broker: BrokerState, ask: Any) -> None:
    answer = ask(DESCRIBE_TOPIC_PARTITIONS, a_request())

    assert rows_of(answer) == [("a", [0, 1, 2]), ("b", [0, 1, 2]), ("c", [0, 1, 2])]
    assert cursor_of(answer) is None
    first = answer.topics[0]
    assert first.topic_id == broker.topics.get("a").topic_id
    assert first.topic_authorized_operations == 3576
    assert (first.partitions[0].leader_id, first.partitions[0].isr_nodes) == (5, (5,))


def test_pages_joined_by_their_cursors_make_the_whole(ask: Any) -> None:
    pages, cursor = [], None
    while True:
        answer = ask(DESCRIBE_TOPIC_PARTITIONS, a_request(limit=2, cursor=cursor))
        pages.append(rows_of(answer))
        cursor = cursor_of(answer)
        if cursor is None:
            break

    assert pages == [
        [("a", [0, 1])],
        [("a", [2]), ("b", [0])],
        [("b", [1, 2])],
        [("c", [0, 1])],
        [("c", [2])],
    ]


def test_a_page_that_ends_with_a_topic_points_to_the_next_one(ask: Any) -> None:
    answer = ask(DESCRIBE_TOPIC_PARTITIONS, a_request(limit=3))

    assert (rows_of(answer), cursor_of(answer)) == ([("a", [0, 1, 2])], ("b", 0))


@pytest.mark.parametrize("limit", [0, -5])
def test_a_page_holds_at_least_one_partition(limit: int, ask: Any) -> None:
    assert rows_of(ask(DESCRIBE_TOPIC_PARTITIONS, a_request(limit=limit))) == [("a", [0])]


def test_the_brokers_own_limit_holds_too(broker: BrokerState, ask: Any) -> None:
    at_once(broker.topics.create("A-large", 2001, {}))

    answer = ask(DESCRIBE_TOPIC_PARTITIONS, a_request(limit=1_000_000))

    assert cursor_of(answer) == ("A-large", 2000)


def test_named_topics_come_sorted_and_unknown_ones_with_an_error(ask: Any) -> None:
    answer = ask(DESCRIBE_TOPIC_PARTITIONS, a_request("nope", "b", "a", "bad name"))

    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a", ErrorCode.none),
        ("b", ErrorCode.none),
        ("bad name", ErrorCode.invalid_topic_exception),
        ("nope", ErrorCode.unknown_topic_or_partition),
    ]


def test_a_cursor_past_the_last_partition_goes_on_with_the_next_topic(ask: Any) -> None:
    answer = ask(DESCRIBE_TOPIC_PARTITIONS, a_request(cursor=("b", 7)))

    assert rows_of(answer) == [("b", []), ("c", [0, 1, 2])]


@pytest.mark.parametrize("cursor", [("c", 0), ("a", -1)])
def test_a_cursor_that_makes_no_sense_is_an_invalid_request(
    cursor: tuple[str, int], ask: Any
) -> None:
    answer = ask(DESCRIBE_TOPIC_PARTITIONS, a_request("a", "b", cursor=cursor))

    assert {topic.error_code for topic in answer.topics} == {ErrorCode.invalid_request}
