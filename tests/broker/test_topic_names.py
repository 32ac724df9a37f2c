from uuid import UUID

import pytest

from headrace.broker import topic_names
from headrace.broker.errors import InvalidTopicError
from headrace.broker.topic_names import (
    MAX_NAME_LENGTH,
    check_topic_name,
    collision_key,
    new_topic_id,
)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "-", "x" * MAX_NAME_LENGTH])
def test_legal_names_pass(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics"),
        ("a/b", "contains one or more characters"),
        ("größe", "contains one or more characters"),
        ("a\n", "contains one or more characters"),
        ("a\0", "contains one or more characters"),
    ],
)
def test_other_names_are_refused_in_kafkas_words(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopicError) as refusal:
        check_topic_name(name)

    assert str(refusal.value).startswith("Topic name is invalid: ")
    assert reason in str(refusal.value)


def test_names_collide_when_only_dots_and_underscores_differ() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a.b") != collision_key("a-b")


def test_no_topic_id_starts_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    with_dash, without = UUID(bytes=b"\xf8" + bytes(15)), UUID(int=7)
    ids = iter([with_dash, without])
    monkeypatch.setattr(topic_names, "uuid4", lambda: next(ids))

    assert new_topic_id() == without
