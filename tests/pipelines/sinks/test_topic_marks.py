"""What a repeat writes, decided by marks alone: over explode, tasks, attempts and moments of death.

No Spark and no broker: a topic is a list of marks, a task writes a prefix of what it would.
"""

import copy
from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from headrace.pipelines.sinks.topic_marks import (
    SOURCE_HEADER,
    Marks,
    RecordPlace,
    SourceMark,
    digest_of,
    mark_of,
    read_mark,
)

Row = tuple[RecordPlace, str]  # where it was made from, and its digest

sources = st.builds(RecordPlace, st.sampled_from(["a", "b"]), st.integers(0, 1), st.integers(0, 3))
# Few contents, so that a record is made into the same row twice.
batches = st.lists(st.tuples(sources, st.sampled_from("xyz")), max_size=12)


class Attempt(NamedTuple):
    """How rows are spread over tasks, and how many rows each writes before it dies."""

    order: list[int]
    tasks: int
    written: list[int]


attempts = st.builds(
    Attempt,
    order=st.lists(st.integers(0, 100), min_size=12, max_size=12),
    tasks=st.integers(1, 4),
    written=st.lists(st.integers(0, 12), min_size=4, max_size=4),
)


def write(topic: list[Row], rows: list[Row], attempt: Attempt, *, is_first: bool) -> None:
    """One attempt that dies: the first spreads rows as it likes, others by their source."""
    there = Marks()
    if not is_first:
        for row in topic:
            there.add(*row)
    tasks: list[list[Row]] = [[] for _ in range(attempt.tasks)]
    for row, number in zip(rows, attempt.order, strict=False):
        place = number if is_first else hash(row[0][:2])
        tasks[place % attempt.tasks].append(row)
    # Each task has its own copy, and none sees what the others write meanwhile.
    before = [copy.deepcopy(there) for _ in tasks]
    for own, task, count in zip(before, tasks, attempt.written, strict=False):
        missing = [row for row in task if not own.take(*row)]
        topic.extend(missing[:count])


whole = attempts.map(lambda attempt: attempt._replace(written=[12] * 4))


@given(batches, st.lists(attempts, max_size=4), whole)
def test_a_repeat_adds_exactly_what_is_missing(
    rows: list[Row], dead: list[Attempt], last: Attempt
) -> None:
    topic: list[Row] = []

    for number, attempt in enumerate([*dead, last]):
        write(topic, rows, attempt, is_first=number == 0)

    assert Counter(topic) == Counter(rows)


@given(st.sets(sources, max_size=12), attempts, whole)
def test_marks_of_the_version_before_do_where_a_record_is_made_into_one(
    places: set[RecordPlace], dead: Attempt, last: Attempt
) -> None:
    rows = [(place, "x") for place in sorted(places)]
    topic: list[Row] = []
    write(topic, rows, dead, is_first=True)
    topic = [(place, "") for place, _ in topic]

    write(topic, rows, last, is_first=False)

    assert Counter(place for place, _ in topic) == Counter(places)


def test_a_digest_tells_apart_all_that_makes_a_record_another() -> None:
    plain = ("id", "t", 0, b"k", b"v", 5, [("h", b"1")])
    others = [
        ("other", "t", 0, b"k", b"v", 5, [("h", b"1")]),
        ("id", "u", 0, b"k", b"v", 5, [("h", b"1")]),
        ("id", "t", None, b"k", b"v", 5, [("h", b"1")]),
        ("id", "t", 0, None, b"v", 5, [("h", b"1")]),
        ("id", "t", 0, b"", b"kv", 5, [("h", b"1")]),
        ("id", "t", 0, b"kv", b"", 5, [("h", b"1")]),
        ("id", "t", 0, b"k", None, 5, [("h", b"1")]),
        ("id", "t", 0, b"k", b"v", None, [("h", b"1")]),
        ("id", "t", 0, b"k", b"v", 5, []),
        ("id", "t", 0, b"k", b"v", 5, [("h", None)]),
        ("id", "t", 0, b"k", b"v", 5, [("h", b"1"), ("h", b"1")]),
    ]

    digests = [digest_of(*each) for each in (plain, *others)]

    assert len(set(digests)) == len(digests)
    assert digest_of(*plain) == digests[0]


def test_a_mark_is_read_as_it_was_written() -> None:
    source = RecordPlace("orders.v1", 3, 120)
    ours = mark_of("app", source, "0f")

    assert read_mark([("h", b"1"), (SOURCE_HEADER, ours)]) == SourceMark("app", source, "0f")
    assert read_mark([(SOURCE_HEADER, b"app/orders.v1/3/120")]) == SourceMark("app", source, "")


def test_of_a_mark_that_was_copied_along_and_ours_the_last_counts() -> None:
    ours = mark_of("app", RecordPlace("orders", 0, 1), "0f")

    mark = read_mark([(SOURCE_HEADER, b"other/raw/0/9/aa"), (SOURCE_HEADER, ours)])

    assert mark == SourceMark("app", RecordPlace("orders", 0, 1), "0f")


def test_what_is_no_mark_is_none() -> None:
    assert read_mark(None) is None
    assert read_mark([("h", b"app/orders/0/1/aa")]) is None
    assert read_mark([(SOURCE_HEADER, None)]) is None
    assert read_mark([(SOURCE_HEADER, b"app/orders/zero/1/aa")]) is None
