"""Both ways of finding by time, the one in C and its Python twin, on the same bytes."""

import struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.records import find, find_fallback
from headrace.records.batch import HEADER_SIZE, stamp, stamp_append_time
from headrace.records.builder import build_batch
from headrace.records.codecs import Codec
from headrace.records.errors import CorruptMessageError, InvalidRecordError
from headrace.records.record import Record, encode_varint, iter_records

try:
    from headrace.records import _scan
except ImportError:
    _scan = None  # type: ignore[assignment]

needs_native = pytest.mark.skipif(_scan is None, reason="the C scanner was not built")
both = pytest.mark.parametrize(
    "finder",
    [pytest.param(_scan, marks=needs_native, id="c"), pytest.param(find_fallback, id="python")],
)
TIMES = [100, 300, 200, 300, 50]
RECORDS = [Record(index, time, None, b"v" * 300, []) for index, time in enumerate(TIMES)]
PLAIN = bytes(build_batch(RECORDS))[HEADER_SIZE:]


def a_batch(codec: Codec = Codec.NONE, base_offset: int = 0) -> bytearray:
    batch = bytearray(build_batch(RECORDS, codec=codec))
    stamp(memoryview(batch), base_offset, 0)
    return batch


@both
@pytest.mark.parametrize(
    ("timestamp", "start_offset", "found"),
    [
        (0, 0, (100, 10)),
        (101, 0, (300, 11)),
        (0, 12, (200, 12)),
        (201, 12, (300, 13)),
        (301, 0, None),
        (0, 15, None),
        (-(2**63), 14, (50, 14)),
    ],
)
def test_the_first_record_that_is_late_enough_and_far_enough_is_found(
    finder: ModuleType, timestamp: int, start_offset: int, found: tuple[int, int] | None
) -> None:
    base = RECORDS[0].timestamp
    assert finder.find_record(PLAIN, 5, base, 10, False, timestamp, start_offset) == found


@both
def test_the_newest_is_the_first_of_the_largest_time(finder: ModuleType) -> None:
    assert finder.find_newest(PLAIN, 5, 100, 10, False, 0) == (300, 11)
    assert finder.find_newest(PLAIN, 5, 100, 10, False, 12) == (300, 13)
    assert finder.find_newest(PLAIN, 5, 100, 10, False, 14) == (50, 14)
    assert finder.find_newest(PLAIN, 5, 100, 10, False, 15) is None


@both
def test_with_append_time_all_records_have_one_time(finder: ModuleType) -> None:
    assert finder.find_record(PLAIN, 5, 777, 10, True, 700, 12) == (777, 12)
    assert finder.find_record(PLAIN, 5, 777, 10, True, 778, 12) is None
    assert finder.find_newest(PLAIN, 5, 777, 10, True, 12) == (777, 12)


def a_record(body_hex: str) -> bytes:
    body = bytes.fromhex(body_hex)
    return encode_varint(len(body)) + body


@both
@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        (b"", "record 0 is cut short"),
        (b"\x80", "record 0 is cut short"),
        (b"\x10\x00", "record 0 is cut short"),
        (b"\xff\xff\xff\xff\xff\x0f", "record 0 has a number that is too long"),
        (b"\x01", "record 0 has a length of -1"),
        (b"\x00", "record 0 runs past its length"),
        (a_record("00"), "record 0 runs past its length"),
        (a_record("00 80"), "record 0 runs past its length"),
        (a_record("00 ffffffffffffffffff02 00"), "record 0 has a number that is too long"),
        (a_record("00 feffffffffffffffff01 00"), "record 0 has a time or an offset beyond 64 bits"),
    ],
)
def test_what_are_no_records_is_said_in_a_sentence(
    finder: ModuleType, records: bytes, sentence: str
) -> None:
    assert finder.find_record(records, 1, 1, 0, False, 2**62, 0) == sentence
    assert finder.find_newest(records, 1, 1, 0, False, 0) == sentence


@both
def test_an_offset_beyond_64_bits_is_no_offset(finder: ModuleType) -> None:
    record = a_record("00 00 02")

    found = finder.find_record(record, 1, 1, 2**63 - 1, False, 0, 0)

    assert found == "record 0 has a time or an offset beyond 64 bits"


@both
def test_a_negative_count_is_refused(finder: ModuleType) -> None:
    assert finder.find_record(b"", -1, 0, 0, False, 0, 0) == "the batch counts -1 records"


_INT64 = st.integers(-(2**63), 2**63 - 1)


@needs_native
@given(
    st.tuples(
        st.binary(max_size=60) | st.builds(lambda at: PLAIN[:at], st.integers(0, len(PLAIN))),
        st.integers(-1, 6),
        _INT64,
        _INT64,
        st.booleans(),
        _INT64,
        _INT64,
    )
)
@example((PLAIN, 5, 100, 0, False, 200, 0))
def test_both_find_the_same_in_any_bytes(arguments: tuple[Any, ...]) -> None:
    assert _scan.find_record(*arguments) == find_fallback.find_record(*arguments)
    newest = (*arguments[:5], arguments[6])
    assert _scan.find_newest(*newest) == find_fallback.find_newest(*newest)


# --- headers


def some_batches() -> bytes:
    batches = b""
    for number, times in enumerate([(10, 20), (5, 6), (30, 40), (1, 2)]):
        records = [Record(index, time, None, b"v", []) for index, time in enumerate(times)]
        batch = bytearray(build_batch(records))
        stamp(memoryview(batch), number * 2, 0)
        batches += batch
    return batches


@both
def test_the_walk_over_headers_stops_where_the_time_may_be(finder: ModuleType) -> None:
    batches = some_batches()
    size = len(batches) // 4

    assert finder.find_header(batches, 0, 15, 0) == (0, True, 20)
    assert finder.find_header(batches, 0, 21, 0) == (2 * size, True, 40)
    assert finder.find_header(batches, 0, 1, 2) == (size, True, 6)
    assert finder.find_header(batches, 3 * size, 41, 0) == (4 * size, False, 2)
    assert finder.find_header(batches, 0, 41, 6) == (4 * size, False, 2)
    assert finder.find_header(b"", 0, 41, 0) == (0, False, -1)
    # The last header is whole, its records are not.
    assert finder.find_header(batches[: 3 * size + 61], 0, 41, 0) == (4 * size, False, 40)


@both
def test_a_length_that_cannot_be_ends_the_walk(finder: ModuleType) -> None:
    batches = bytearray(some_batches())
    size = len(batches) // 4
    struct.pack_into(">i", batches, size + 8, 48)

    assert finder.find_header(bytes(batches), 0, 41, 0) == (-1 - size, False, 20)
    with pytest.raises(ValueError, match="outside"):
        finder.find_header(bytes(batches), -1, 0, 0)


@needs_native
@given(st.binary(max_size=200), st.integers(0, 220), st.integers(-1, 2**62), st.integers(-1, 2**62))
def test_both_walk_any_bytes_alike(data: bytes, start: int, time: int, offset: int) -> None:
    wanted = (data, start, time, offset)
    assert _scan.find_header(*wanted) == find_fallback.find_header(*wanted)


# --- time indexes


@both
@pytest.mark.parametrize(
    ("entries", "disorder"),
    [
        ([], -1),
        ([(5, 0), (6, 1), (9, 7)], -1),
        ([(5, 0), (5, 1)], 1),
        ([(5, 3), (6, 3)], 1),
        ([(-1, 3)], 0),
        ([(5, -1)], 0),
    ],
)
def test_a_time_index_must_increase(
    finder: ModuleType, entries: list[tuple[int, int]], disorder: int
) -> None:
    data = b"".join(struct.pack(">qi", *entry) for entry in entries)

    assert finder.find_disorder(data + b"rest") == disorder


# --- whole batches


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_of_any_codec_is_searched(codec: Codec) -> None:
    batch = a_batch(codec, base_offset=10)

    assert find.first_record(batch, 101, 0) == (300, 11)
    assert find.newest_record(batch, 12) == (300, 13)
    decoded = [(record.timestamp, record.offset) for record in iter_records(batch)]
    assert [find.first_record(batch, -1, offset) for _, offset in decoded] == decoded


def test_the_time_of_a_batch_with_append_time_is_its_headers() -> None:
    batch = a_batch()
    stamp_append_time(memoryview(batch), 5_000)

    assert find.first_record(batch, 4_000, 3) == (5_000, 3)
    assert find.newest_record(batch, 0) == (5_000, 0)


def test_what_is_no_batch_is_refused() -> None:
    with pytest.raises(CorruptMessageError, match="cut short at 70 bytes"):
        find.first_record(bytes(a_batch()[:70]), 0, 0)
    broken = a_batch()
    broken[HEADER_SIZE] = 1
    with pytest.raises(InvalidRecordError, match="record 0 has a length of -1"):
        find.first_record(broken, 0, 0)
