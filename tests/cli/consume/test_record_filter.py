import re

import pytest
from tests.cli.consume.test_record_format import ARecord

from headrace.cli.consume.record_filter import (
    all_of,
    has_header,
    has_key,
    key_matches,
    value_matches,
)

RECORD = ARecord(b"a value", b"a key", [("h", b"1"), ("h", b"2"), ("n", None)])
NULL = ARecord(None, None, None)


def test_a_key_is_compared_whole() -> None:
    assert has_key(b"a key")(RECORD)
    assert not has_key(b"a")(RECORD)
    assert not has_key(b"")(NULL)


def test_patterns_are_searched_for() -> None:
    assert key_matches(b"k.y$")(RECORD)
    assert value_matches(b"val")(RECORD)
    assert not key_matches(b"val")(RECORD)


def test_null_matches_nothing() -> None:
    assert not key_matches(b"")(NULL)
    assert not value_matches(b"")(NULL)


@pytest.mark.parametrize(
    ("text", "is_there"),
    [("h", True), ("h=1", True), ("h=2", True), ("h=3", False), ("x", False), ("n", True)],
)
def test_one_of_the_headers_must_fit(text: str, *, is_there: bool) -> None:
    assert has_header(text)(RECORD) is is_there


def test_a_record_without_headers_has_none() -> None:
    assert not has_header("h")(NULL)


def test_all_conditions_must_hold() -> None:
    assert all_of([]) is None
    both = all_of([has_key(b"a key"), value_matches(b"x")])
    assert both is not None
    assert not both(RECORD)


def test_a_bad_pattern_is_an_error_of_re() -> None:
    with pytest.raises(re.error):
        value_matches(b"(")
