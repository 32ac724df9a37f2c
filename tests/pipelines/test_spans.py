"""Spans as sets of records, and what a sink still lacks of a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.pipelines.errors import SinkError
from headrace.pipelines.spans import Batch, Log, Spans, Written

_ORDERS = Log("orders", 0, "x9")

_RANGES = st.tuples(st.integers(0, 20), st.integers(0, 20))
_LOGS = st.builds(
    Log, st.sampled_from(["a", "b"]), st.integers(0, 1), st.sampled_from(["", "x9", "y7"])
)
_SPANS = st.lists(st.dictionaries(_LOGS, _RANGES), max_size=4).map(
    lambda parts: _union([Spans.of(part) for part in parts])
)


def _union(parts: list[Spans]) -> Spans:
    whole = Spans()
    for part in parts:
        whole |= part
    return whole


def _records(spans: Spans) -> set[tuple[Log, int]]:
    return {(log, offset) for log, (start, end) in spans for offset in range(start, end)}


@given(_SPANS, _SPANS)
def test_spans_are_sets_of_records(one: Spans, other: Spans) -> None:
    assert _records(one | other) == _records(one) | _records(other)
    assert _records(one - other) == _records(one) - _records(other)
    assert bool(one) == bool(_records(one))
    assert (one == other) == (_records(one) == _records(other))


@given(_SPANS)
def test_a_note_is_read_as_it_was_written(spans: Spans) -> None:
    written = Written(7, spans)

    assert Written.from_json(written.to_json()) == written


def test_what_a_sink_has_of_a_batch_is_not_left_to_write() -> None:
    written = Written().after(Batch(0, Spans.of({_ORDERS: (0, 10)})))

    assert written.left_of(Batch(0, Spans.of({_ORDERS: (0, 10)}))) is None
    assert written.left_of(Batch(5, Spans.of({_ORDERS: (2, 9)}))) is None


def test_a_batch_of_the_same_number_that_holds_more_leaves_what_is_more() -> None:
    written = Written().after(Batch(0, Spans.of({_ORDERS: (5, 10)})))

    left = written.left_of(Batch(0, Spans.of({_ORDERS: (0, 20)})))

    assert left == Batch(0, Spans({_ORDERS: ((0, 5), (10, 20))}))


def test_a_topic_made_again_under_its_name_is_another_log() -> None:
    written = Written().after(Batch(0, Spans.of({_ORDERS: (0, 10)})))
    batch = Batch(1, Spans.of({Log("orders", 0, "y7"): (0, 10)}))

    assert written.left_of(batch) is batch


def test_batches_that_do_not_say_what_they_hold_are_known_by_their_number() -> None:
    written = Written().after(Batch(3))

    assert written.left_of(Batch(3)) is None
    assert written.left_of(Batch(4)) == Batch(4)


def test_a_note_of_a_number_counts_what_came_before_the_next_batch_as_written() -> None:
    former = Written.former(3)
    before = Spans.of({_ORDERS: (0, 10)})
    batch = Batch(4, Spans.of({_ORDERS: (10, 20)}), before=before)

    assert former.left_of(Batch(3, before)) is None
    assert former.left_of(batch) is batch
    assert former.after(batch).left_of(Batch(0, Spans.of({_ORDERS: (0, 20)}))) is None


def test_a_number_that_goes_back_behind_a_note_of_a_number_is_refused() -> None:
    with pytest.raises(SinkError, match="batch 0 comes after batch 3, of which an earlier version"):
        Written.former(3).left_of(Batch(0, Spans.of({_ORDERS: (0, 10)})))


def test_a_sink_that_was_given_nothing_lacks_everything() -> None:
    written = Written().after(Batch(0, Spans()))
    batch = Batch(0, Spans.of({_ORDERS: (0, 10)}))

    assert Written.from_json(written.to_json()).left_of(batch) is batch
