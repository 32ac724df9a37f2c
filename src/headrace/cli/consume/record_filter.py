"""Which records `headrace consume` prints: by key, headers and value; all conditions must hold."""

import re
from collections.abc import Callable, Sequence

from headrace.cli.consume.record_format import ReadRecord

Condition = Callable[[ReadRecord], bool]


def has_key(key: bytes) -> Condition:
    """Whether the key is exactly this one."""
    return lambda record: record.key() == key


def key_matches(pattern: bytes) -> Condition:
    """Whether the pattern is found in the key; a record without one has no match."""
    search = re.compile(pattern).search
    return lambda record: (key := record.key()) is not None and search(key) is not None


def value_matches(pattern: bytes) -> Condition:
    """Whether the pattern is found in the value; a tombstone has no match."""
    search = re.compile(pattern).search
    return lambda record: (value := record.value()) is not None and search(value) is not None


def has_header(text: str) -> Condition:
    """NAME: whether there is such a header; NAME=VALUE: whether one has that value."""
    name, sign, value = text.partition("=")
    wanted = value.encode("utf-8", "surrogateescape")
    return lambda record: any(
        found == name and (not sign or content == wanted)
        for found, content in record.headers() or ()
    )


def all_of(conditions: Sequence[Condition]) -> Condition | None:
    """One condition for all; None: every record is wanted."""
    if not conditions:
        return None
    return lambda record: all(condition(record) for condition in conditions)
