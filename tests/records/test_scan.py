"""Both scanners, the one in C and its Python twin, on the same bytes."""

from types import ModuleType

import crc32c
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.records import scan, scan_fallback
from headrace.records.batch import HEADER_SIZE, seal
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


def a_record(body_hex: str) -> bytes:
    body = bytes.fromhex(body_hex)
    return encode_varint(len(body)) + body


@both
def test_good_records_have_no_fault(scanner: ModuleType) -> None:
    assert scanner.check_records(PLAIN, 3, False) is None
    assert scanner.check_records(b"", 0, False) is None


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
    assert scanner.check_records(records, 1, False) == sentence


@both
def test_the_widest_numbers_are_accepted(scanner: ModuleType) -> None:
    assert scanner.check_records(a_record("00 ffffffffffffffffff01 00 01 01 00"), 1, False) is None


@both
def test_a_missing_key_is_a_fault_only_where_keys_are_needed(scanner: ModuleType) -> None:
    assert scanner.check_records(PLAIN, 3, True) == (
        "record 1 has no key, and a compacted topic needs one"
    )


@both
def test_the_count_must_be_that_of_the_records(scanner: ModuleType) -> None:
    assert scanner.check_records(PLAIN, 4, False) == "record 3 is cut short"
    assert "bytes follow" in scanner.check_records(PLAIN, 2, False)
    assert scanner.check_records(b"", -1, False) == "the batch counts -1 records"
    assert scanner.check_records(b"", 2**31 - 1, False) == "record 0 is cut short"


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
@pytest.mark.parametrize("arguments", [(), (b"",), (1, True), (b"", True, 3)])
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


@needs_native
@given(mutated(PLAIN) | st.binary(max_size=64), st.integers(-2, 6), st.booleans())
def test_both_walk_records_alike(records: bytes, count: int, needs_keys: bool) -> None:
    assert _scan.check_records(records, count, needs_keys) == scan_fallback.check_records(
        records, count, needs_keys
    )


@needs_native
@given(mutated(BATCH) | st.binary(max_size=100), st.booleans(), st.booleans(), st.booleans())
def test_both_check_batches_alike(
    batch: bytes, is_resealed: bool, has_true_length: bool, needs_keys: bool
) -> None:
    changed = bytearray(batch)
    if has_true_length and len(changed) >= HEADER_SIZE:
        changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    if is_resealed and len(changed) >= HEADER_SIZE:
        seal(changed)  # so that the fault lies behind the checksum

    assert _scan.check_batch(changed, needs_keys) == scan_fallback.check_batch(changed, needs_keys)


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
