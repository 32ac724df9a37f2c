"""Both scanners, the one in C and its Python twin, on the same bytes."""

from types import ModuleType
from typing import Any

import crc32c
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.records import scan, scan_fallback
from headrace.records.batch import HEADER_SIZE, LOG_APPEND_TIME_BIT, seal
from headrace.records.builder import build_batch, numbered
from headrace.records.record import Record, encode_varint

try:
    from headrace.records import _scan
except ImportError:
    _scan = None  # type: ignore[assignment]

needs_native = pytest.mark.skipif(_scan is None, reason="the C scanner was not built")
both = pytest.mark.parametrize(
    "scanner",
    [pytest.param(_scan, marks=needs_native, id="c"), pytest.param(scan_fallback, id="python")],
)

RECORDS = [
    Record(0, 5, b"key", b"value", [("name", b"x"), ("null", None), ("", b"")]),
    Record(1, 2**41, None, None, []),
    Record(2, 0, b"", b"v" * 200, [("h", b"y" * 70)]),
]
BATCH = bytes(build_batch(RECORDS))
PLAIN = BATCH[HEADER_SIZE:]
BASE = RECORDS[0].timestamp
ANY_TIME = (-(2**63), 2**63 - 1)
CORRUPT, INVALID, BAD_RECORDS, MAX_TIMESTAMP = range(4)
NO_KEY, TIME_OUT_OF_RANGE, CLAIMS_APPEND_TIME = range(3)


def walk(scanner: ModuleType, records: bytes, count: int, needs_keys: bool = False) -> Any:
    """Check records on a topic that takes any time."""
    return scanner.check_records(records, count, BASE, False, needs_keys, *ANY_TIME)


def a_record(body_hex: str) -> bytes:
    body = bytes.fromhex(body_hex)
    return encode_varint(len(body)) + body


@both
def test_good_records_give_the_largest_timestamp(scanner: ModuleType) -> None:
    assert walk(scanner, PLAIN, 3) == (MAX_TIMESTAMP, 2**41)
    assert walk(scanner, b"", 0) == (MAX_TIMESTAMP, -1)


FAULTS = [
    (b"", "record 0 is cut short"),
    (b"\x80", "record 0 is cut short"),
    (b"\x10\x00", "record 0 is cut short"),
    (b"\xfe\xff\xff\xff\x0f", "record 0 is cut short"),
    (b"\xff\xff\xff\xff\x7f", "record 0 has a number that is too long"),
    (b"\xff\xff\xff\xff\xff\x0f", "record 0 has a number that is too long"),
    (b"\x01", "record 0 has a length of -1"),
    (b"\xff\xff\xff\xff\x0f", "record 0 has a length of -2147483648"),
    (b"\x00", "record 0 runs past its length"),
    (a_record("00"), "record 0 runs past its length"),
    (a_record("00 ffffffffffffffffff02 00 01 01 00"), "record 0 has a number that is too long"),
    (a_record("00 ffffffffffffffffffff01 00 01 01 00"), "record 0 has a number that is too long"),
    (a_record("00 00 02 01 01 00"), "record 0 has offset delta 1"),
    (a_record("00 00 01 01 01 00"), "record 0 has offset delta -1"),
    (a_record("00 00 00 03 01 00"), "record 0 has a field of -2 bytes"),
    (a_record("00 00 00 08 01 00"), "record 0 runs past its length"),
    (a_record("00 00 00 feffffff0f 01 00"), "record 0 runs past its length"),
    (a_record("00 00 00 01 05 00"), "record 0 has a field of -3 bytes"),
    (a_record("00 00 00 01 01"), "record 0 runs past its length"),
    (a_record("00 00 00 01 01 01"), "record 0 has -1 headers"),
    (a_record("00 00 00 01 01 feffffff0f"), "record 0 runs past its length"),
    (a_record("00 00 00 01 01 02 01 01"), "record 0 has a header without a key"),
    (a_record("00 00 00 01 01 02 00 03"), "record 0 has a field of -2 bytes"),
    (a_record("00 00 00 01 01 00 00"), "record 0 is shorter than its length"),
    (a_record("00 00 00 01 01 00") + b"ab", "2 bytes follow the last record"),
]


@both
@pytest.mark.parametrize(("records", "sentence"), FAULTS)
def test_each_fault_has_its_sentence(scanner: ModuleType, records: bytes, sentence: str) -> None:
    assert walk(scanner, records, 1) == (INVALID, sentence)


@both
def test_the_widest_numbers_are_accepted(scanner: ModuleType) -> None:
    lowest = a_record("00 ffffffffffffffffff01 00 01 01 00")

    assert walk(scanner, lowest, 1) == (MAX_TIMESTAMP, -1)  # which stands for none


@both
def test_a_timestamp_wraps_around_as_it_does_in_java(scanner: ModuleType) -> None:
    lowest, highest = ANY_TIME
    one_later = a_record("00 02 00 01 01 00")

    found = scanner.check_records(one_later, 1, highest, False, False, 0, highest)

    assert found == (BAD_RECORDS, (0, 1, [(0, TIME_OUT_OF_RANGE, lowest)]))


@both
def test_every_record_without_a_key_is_listed_where_keys_are_needed(scanner: ModuleType) -> None:
    records = [record._replace(key=None) if record.offset != 2 else record for record in RECORDS]
    plain = bytes(build_batch(records))[HEADER_SIZE:]

    listed = [(0, NO_KEY, 5), (1, NO_KEY, 2**41)]
    assert walk(scanner, plain, 3, needs_keys=True) == (BAD_RECORDS, (2, 0, listed))
    assert walk(scanner, plain, 3, needs_keys=False) == (MAX_TIMESTAMP, 2**41)


@both
def test_every_timestamp_out_of_range_is_listed_but_not_the_missing_ones(
    scanner: ModuleType,
) -> None:
    times = [10, 9, -1, 20, 21, -5, 15]
    records = [Record(index, time, b"k", b"v", []) for index, time in enumerate(times)]
    batch = bytes(build_batch(records))

    wrong = [(index, TIME_OUT_OF_RANGE, times[index]) for index in (1, 4, 5)]
    assert scanner.check_batch(batch, True, 10, 20) == (BAD_RECORDS, (0, 3, wrong))
    assert scanner.check_batch(batch, True, -5, 21) is None


@both
def test_a_record_is_listed_once_and_for_its_key_first(scanner: ModuleType) -> None:
    records = [Record(0, 99, None, b"v", []), Record(1, 99, b"k", b"v", [])]

    found = scanner.check_batch(bytes(build_batch(records)), True, 0, 50)

    assert found == (BAD_RECORDS, (1, 1, [(0, NO_KEY, 99), (1, TIME_OUT_OF_RANGE, 99)]))


@both
def test_a_clients_log_append_time_is_a_fault_of_every_record(scanner: ModuleType) -> None:
    batch = build_batch(numbered([b"a", b"b"], timestamp=7))
    batch[22] |= LOG_APPEND_TIME_BIT
    seal(batch)

    listed = [(0, CLAIMS_APPEND_TIME, 7), (1, CLAIMS_APPEND_TIME, 7)]
    assert scanner.check_batch(batch, False, *ANY_TIME) == (BAD_RECORDS, (0, 2, listed))


@both
def test_broken_bytes_outweigh_bad_records(scanner: ModuleType) -> None:
    broken = PLAIN + b"!"

    assert walk(scanner, broken, 3, needs_keys=True) == (
        INVALID,
        "1 bytes follow the last record",
    )


@both
def test_no_more_faults_are_listed_than_the_limit(scanner: ModuleType) -> None:
    limit = scanner.MAX_LISTED_FAULTS
    batch = bytes(build_batch(numbered([b""] * (limit + 5))))

    kind, (keyless, wrong_times, listed) = scanner.check_batch(batch, True, *ANY_TIME)

    assert (kind, keyless, wrong_times, len(listed)) == (BAD_RECORDS, limit + 5, 0, limit)
    assert listed[-1] == (limit - 1, NO_KEY, 0)


@both
@pytest.mark.parametrize("told", [-1, 0, 2**41 - 1, 2**41 + 1, 2**63 - 1, -(2**63)])
def test_a_header_that_lies_about_the_largest_timestamp_is_found_out(
    scanner: ModuleType, told: int
) -> None:
    batch = bytearray(BATCH)
    batch[35:43] = told.to_bytes(8, "big", signed=True)
    seal(batch)

    assert scanner.check_batch(batch, False, *ANY_TIME) == (MAX_TIMESTAMP, 2**41)
    assert scanner.check_batch(BATCH, False, *ANY_TIME) is None


@both
def test_limits_may_lie_beyond_what_a_timestamp_can_be(scanner: ModuleType) -> None:
    assert scanner.check_batch(BATCH, False, -(2**70), 2**70) is None


@both
def test_the_count_must_be_that_of_the_records(scanner: ModuleType) -> None:
    assert walk(scanner, PLAIN, 4) == (INVALID, "record 3 is cut short")
    assert "bytes follow" in walk(scanner, PLAIN, 2)[1]
    assert walk(scanner, b"", -1) == (INVALID, "the batch counts -1 records")
    assert walk(scanner, b"", 2**31 - 1) == (INVALID, "record 0 is cut short")


@both
def test_a_run_of_batches_is_walked_to_its_end(scanner: ModuleType) -> None:
    log = b"??" + BATCH * 3

    assert scanner.scan_batches(log, 2, len(log)) == (len(log), None)
    assert scanner.scan_batches(log, 2, 2) == (2, None)
    assert scanner.scan_batches(memoryview(log), 2, 2 + len(BATCH)) == (2 + len(BATCH), None)


@both
def test_an_incomplete_batch_at_the_end_is_no_fault(scanner: ModuleType) -> None:
    log = BATCH * 2

    for end in range(len(BATCH), len(log)):
        assert scanner.scan_batches(log, 0, end) == (len(BATCH), None)


@both
@pytest.mark.parametrize(
    ("position", "value", "sentence"),
    [
        (8, 0x80, "batch length is -2147483"),
        (11, 48, "below 49"),
        (16, 1, "magic is 1, not 2"),
        (16, 0xFF, "magic is 255"),
        (70, 0xEE, "CRC-32C is "),
    ],
)
def test_a_scan_stops_where_a_batch_is_damaged(
    scanner: ModuleType, position: int, value: int, sentence: str
) -> None:
    damaged = bytearray(BATCH)
    damaged[8:12] = bytes(4) if position == 11 else damaged[8:12]
    damaged[position] = value

    end, fault = scanner.scan_batches(BATCH + damaged + BATCH, 0, 3 * len(BATCH))

    assert end == len(BATCH)
    assert sentence in fault


@both
def test_the_next_good_batch_is_found_behind_damage(scanner: ModuleType) -> None:
    second = bytes(build_batch(numbered([b"later"], first_offset=50)))
    log = b"\x02" * 100 + BATCH[:-1] + second

    assert scanner.find_batch(log, 0, len(log), 0) == len(log) - len(second)
    assert scanner.find_batch(log, 0, len(log), 51) == -1
    assert scanner.find_batch(log, 0, len(log) - 1, 0) == -1
    assert scanner.find_batch(log, len(log) - len(second) + 1, len(log), 0) == -1


@both
def test_a_batch_that_begins_at_the_start_is_found_there(scanner: ModuleType) -> None:
    assert scanner.find_batch(b"xx" + BATCH, 2, 2 + len(BATCH), 0) == 2


@both
@pytest.mark.parametrize(("start", "end"), [(-1, 5), (3, 2), (0, 11), (11, 11)])
def test_bounds_outside_the_buffer_are_refused(scanner: ModuleType, start: int, end: int) -> None:
    with pytest.raises(ValueError, match="outside a buffer of 10 bytes"):
        scanner.scan_batches(bytes(10), start, end)
    with pytest.raises(ValueError, match="outside a buffer of 10 bytes"):
        scanner.find_batch(bytes(10), start, end, 0)


@both
def test_every_batch_of_kafkas_passes_the_scan(
    scanner: ModuleType, kafka_batches: dict[str, list[bytes]]
) -> None:
    for batches in kafka_batches.values():
        log = b"".join(batches)
        assert scanner.scan_batches(log, 0, len(log)) == (len(log), None)


@needs_native
def test_the_native_scanner_is_the_one_in_use() -> None:
    assert scan.IS_NATIVE
    assert scan.check_batch is _scan.check_batch


@needs_native
@given(st.binary(max_size=50), st.integers(0, 20_000), st.integers(0, 9))
@example(b"\x01", 6144, 0)
@example(b"\x01", 768 * 3 + 7, 1)
def test_the_checksum_is_that_of_the_crc32c_package(seed: bytes, size: int, skip: int) -> None:
    data = memoryview((seed + b"#") * (size // (len(seed) + 1) + 10))[skip : skip + size]

    assert _scan.crc32c(data) == crc32c.crc32c(data)


@needs_native
@pytest.mark.parametrize(
    "arguments",
    [(), (b"", True, 0), (1, True, 0, 0), (b"", True, "0", 0), (b"", True, 0, None)],
)
def test_wrong_arguments_are_a_type_error(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _scan.check_batch(*arguments)  # type: ignore[arg-type]


@st.composite
def mutated(draw: st.DrawFn, original: bytes) -> bytes:
    """`original` with some bytes replaced, a piece cut out or put in."""
    data = bytearray(original)
    for _ in range(draw(st.integers(0, 4))):
        position = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["replace", "cut", "insert", "truncate"]))
        if kind == "replace" and data:
            data[position] = draw(
                st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
            )
        elif kind == "cut":
            del data[position : position + draw(st.integers(1, 5))]
        elif kind == "insert":
            data[position:position] = draw(st.binary(min_size=1, max_size=6))
        elif kind == "truncate" and draw(st.booleans()):
            del data[position:]
    return bytes(data)


TIMES = st.sampled_from([*ANY_TIME, -6, -1, 0, 1, 5, 2**41 - 1, 2**41]) | st.integers(*ANY_TIME)


@needs_native
@given(
    mutated(PLAIN) | st.binary(max_size=64),
    st.tuples(st.integers(-2, 6), TIMES, st.booleans(), st.booleans(), TIMES, TIMES),
)
def test_both_walk_records_alike(records: bytes, rules: Any) -> None:
    assert _scan.check_records(records, *rules) == scan_fallback.check_records(records, *rules)


RULES = st.tuples(st.booleans(), TIMES, TIMES)


@needs_native
@given(mutated(BATCH) | st.binary(max_size=100), st.booleans(), st.booleans(), RULES)
def test_both_check_batches_alike(
    batch: bytes, is_resealed: bool, has_true_length: bool, rules: Any
) -> None:
    changed = bytearray(batch)
    if has_true_length and len(changed) >= HEADER_SIZE:
        changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    if is_resealed and len(changed) >= HEADER_SIZE:
        seal(changed)  # so that the fault lies behind the checksum

    assert _scan.check_batch(changed, *rules) == scan_fallback.check_batch(changed, *rules)


@needs_native
@given(
    st.lists(
        st.tuples(st.integers(-(2**62), 2**62), st.none() | st.binary(max_size=3)), min_size=1
    ),
    TIMES,
    TIMES,
    st.sampled_from([0, LOG_APPEND_TIME_BIT]),
    RULES,
)
def test_both_judge_whole_batches_alike(
    records: list[tuple[int, bytes | None]], base: int, told: int, attributes: int, rules: Any
) -> None:
    batch = build_batch([Record(i, at, key, b"v", []) for i, (at, key) in enumerate(records)])
    batch[22] |= attributes
    batch[27:35] = base.to_bytes(8, "big", signed=True)
    batch[35:43] = told.to_bytes(8, "big", signed=True)
    seal(batch)

    assert _scan.check_batch(batch, *rules) == scan_fallback.check_batch(batch, *rules)


@needs_native
def test_both_have_the_same_constants() -> None:
    names = [name for name in vars(_scan) if name.isupper()]

    assert len(names) == 8
    for name in names:
        assert getattr(_scan, name) == getattr(scan_fallback, name), name


@needs_native
@given(mutated(BATCH * 3), st.data())
def test_both_scan_and_resync_alike(log: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(log)))
    start = data.draw(st.integers(0, end))
    min_offset = data.draw(st.integers(-1, 3))

    assert _scan.scan_batches(log, start, end) == scan_fallback.scan_batches(log, start, end)
    assert _scan.find_batch(log, start, end, min_offset) == scan_fallback.find_batch(
        log, start, end, min_offset
    )
