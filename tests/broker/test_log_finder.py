from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.broker.errors import InvalidTopicError, UnknownTopicError
from headrace.broker.log_finder import LogFinder

OFFSETS_ID = UUID(int=7)


@pytest.fixture
def topics() -> Any:
    """As much of `Topics` as a finder asks for; a log is the name and number it was asked by."""
    return SimpleNamespace(
        generation=0,
        log=lambda name, partition: (name, partition),
        get_by_id=lambda topic_id: SimpleNamespace(
            name="__consumer_offsets" if topic_id == OFFSETS_ID else "orders"
        ),
    )


def found(finder: LogFinder, topic: bytes, *, is_id: bool = False) -> object:
    return cast(object, finder.find(topic, 3, is_id))


def test_a_log_is_found_by_name_and_by_id(topics: Any) -> None:
    finder = LogFinder(topics)

    assert found(finder, b"orders") == ("orders", 3)
    assert found(finder, UUID(int=1).bytes, is_id=True) == ("orders", 3)


def test_what_was_found_is_forgotten_when_a_topic_changes(topics: Any) -> None:
    finder = LogFinder(topics)
    found(finder, b"orders")
    topics.log = lambda name, partition: "another"
    assert found(finder, b"orders") == ("orders", 3)

    topics.generation += 1

    assert found(finder, b"orders") == "another"


def test_a_name_that_is_no_text_is_unknown(topics: Any) -> None:
    with pytest.raises(UnknownTopicError):
        found(LogFinder(topics), b"\xff")


@pytest.mark.parametrize(
    ("topic", "is_id"), [(b"__consumer_offsets", False), (OFFSETS_ID.bytes, True)]
)
def test_internal_topics_are_read_by_clients_and_not_written(
    topics: Any, topic: bytes, is_id: bool
) -> None:
    assert found(LogFinder(topics), topic, is_id=is_id) == ("__consumer_offsets", 3)

    with pytest.raises(InvalidTopicError, match="Cannot append to internal topic"):
        found(LogFinder(topics, is_for_append=True), topic, is_id=is_id)


def test_other_topics_are_written(topics: Any) -> None:
    assert found(LogFinder(topics, is_for_append=True), b"orders") == ("orders", 3)
