"""Where records lie in a batch, held against the records decoded whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.records.batch import HEADER_SIZE
from headrace.records.builder import build_batch
from headrace.records.errors import InvalidRecordError
from headrace.records.record import Record, iter_records
from headrace.records.spans import iter_spans, read_keys

blobs = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), blobs), max_size=2)
rows = st.lists(
    st.tuples(st.integers(0, 300), st.integers(-(2**40), 2**40), blobs, blobs, headers),
    min_size=1,
    max_size=6,
)


def build(found: list[tuple[int, int, bytes | None, bytes | None, list[object]]]) -> bytes:
    records, offset = [], 100
    for gap, timestamp, key, value, some_headers in found:
        records.append(Record(offset, timestamp, key, value, some_headers))  # type: ignore[arg-type]
        offset += gap + 1
    return bytes(build_batch(records))


@given(rows)
def test_spans_are_what_decoding_finds(found: list[object]) -> None:
    batch = build(found)  # type: ignore[arg-type]
    expected = list(iter_records(batch))

    spans = list(iter_spans(batch, len(expected), HEADER_SIZE))

    assert [(s.offset_delta + 100, s.key) for s in spans] == [(r.offset, r.key) for r in expected]
    assert [s.has_value for s in spans] == [r.value is not None for r in expected]
    assert [s.timestamp_delta + expected[0].timestamp for s in spans] == [
        r.timestamp for r in expected
    ]
    assert spans[0].start == HEADER_SIZE
    assert spans[-1].end == len(batch)
    assert read_keys(batch, len(expected), HEADER_SIZE) == [(s.offset_delta, s.key) for s in spans]


def test_records_cut_anywhere_are_refused() -> None:
    plain = build([(0, 5, b"key", b"value", []), (0, 6, b"k", None, [])])[HEADER_SIZE:]

    for end in range(len(plain)):
        with pytest.raises(InvalidRecordError):
            list(iter_spans(plain[:end], 2))
        with pytest.raises(InvalidRecordError):
            read_keys(plain[:end], 2)
