"""The scanner in Python: what `_scan.c` does, for machines that could not build it.

Both give the same answers, sentence for sentence; a test holds them together.
"""

from typing import TypeAlias

from crc32c import crc32c

from headrace.records.batch import (
    CHECKSUM_START,
    CODEC_MASK,
    CONTROL_BIT,
    CURRENT_MAGIC,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    MIN_BATCH_LENGTH,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    peek_header,
)

# What a check found, as (kind, what). With CORRUPT and INVALID comes a sentence, with
# BAD_RECORDS what is wrong with which records, with MAX_TIMESTAMP the largest there is.
CORRUPT = 0
INVALID = 1
BAD_RECORDS = 2
MAX_TIMESTAMP = 3

# What may be wrong with one record while all the others are good.
NO_KEY = 0
TIME_OUT_OF_RANGE = 1
CLAIMS_APPEND_TIME = 2

# As many faulty records of a batch are listed: librdkafka's largest batch by default. The rest
# is only counted; their producer hears of them when it has sent the batch without the first.
MAX_LISTED_FAULTS = 10_000

# How many have no key, how many a wrong time, and (index, kind, timestamp) of those listed.
RecordFaults: TypeAlias = tuple[int, int, list[tuple[int, int, int]]]
Finding: TypeAlias = tuple[int, str | int | RecordFaults]

_MAGIC_AT = 16
_RESERVED_ATTRIBUTES = 0xFFFF & ~(2 * DELETE_HORIZON_BIT - 1)
_INT64_MIN = -(2**63)


class BrokenRecordError(Exception):
    """Carries the sentence out of the walk."""


class CutShortError(Exception):
    """The bytes end inside a number."""


def check_batch(batch: Buffer, needs_keys: bool, earliest: int, latest: int) -> Finding | None:
    """What is wrong with a producer's bytes, or with the header's largest timestamp; or None.

    Compressed records are left for the caller to decompress and hand to check_records.
    """
    view = memoryview(batch)
    size = len(view)
    if size == 0:
        return INVALID, "there is no batch"
    if size > _MAGIC_AT and view[_MAGIC_AT] != CURRENT_MAGIC:
        return INVALID, f"magic is {view[_MAGIC_AT]}, not {CURRENT_MAGIC}"
    header = peek_header(view)
    if header is None:
        return CORRUPT, f"a batch of {size} bytes is shorter than its header"
    if header.batch_length < MIN_BATCH_LENGTH:
        return CORRUPT, _length_fault(header)
    if header.size > size:
        return CORRUPT, f"the batch has {size} of its {header.size} bytes"
    if header.size < size:
        return INVALID, f"{size - header.size} bytes follow the batch"
    crc = crc32c(view[CHECKSUM_START:])
    if crc != header.crc:
        return CORRUPT, _crc_fault(header, crc)
    if header.attributes & CONTROL_BIT:
        return INVALID, "a client may not write a control batch"
    count, offsets = header.record_count, header.last_offset_delta + 1
    if count <= 0:
        return INVALID, f"the batch counts {count} records"
    if count != offsets:
        return INVALID, f"the batch counts {count} records over {offsets} offsets"
    if header.attributes & CODEC_MASK:
        return None
    found = check_records(
        view[HEADER_SIZE:],
        count,
        header.base_timestamp,
        header.is_log_append_time,
        needs_keys,
        earliest,
        latest,
    )
    return None if found == (MAX_TIMESTAMP, header.max_timestamp) else found


def check_records(
    records: Buffer,
    count: int,
    base_timestamp: int,
    claims_append_time: bool,
    needs_keys: bool,
    earliest: int,
    latest: int,
) -> Finding:
    """The largest timestamp of `count` plain records with offset deltas 0, 1, 2 ...

    Or why they are not that, or which of them a topic with these rules does not take.
    """
    if count < 0:
        return INVALID, f"the batch counts {count} records"
    view = memoryview(records)
    position = 0
    max_timestamp = NO_TIMESTAMP
    keyless = wrong_times = 0
    listed: list[tuple[int, int, int]] = []
    try:
        for index in range(count):
            position, delta, has_key = _check_record(view, position, index)
            # Java's sum, which wraps around.
            timestamp = (base_timestamp + delta - _INT64_MIN) % 2**64 + _INT64_MIN
            max_timestamp = max(timestamp, max_timestamp)
            if needs_keys and not has_key:
                kind = NO_KEY
                keyless += 1
            elif claims_append_time:
                kind = CLAIMS_APPEND_TIME
                wrong_times += 1
            elif timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
                kind = TIME_OUT_OF_RANGE
                wrong_times += 1
            else:
                continue
            if len(listed) < MAX_LISTED_FAULTS:
                listed.append((index, kind, timestamp))
    except BrokenRecordError as fault:
        return INVALID, str(fault)
    if position != len(view):
        return INVALID, f"{len(view) - position} bytes follow the last record"
    if listed:
        return BAD_RECORDS, (keyless, wrong_times, listed)
    return MAX_TIMESTAMP, max_timestamp


def scan_batches(buffer: Buffer, start: int, end: int) -> tuple[int, str | None]:
    """Walk whole batches in [start, end): where the last good one ends, and what stopped there.

    No fault before `end` means that the batch there is not all here yet.
    """
    view = _bounded(buffer, start, end)
    position = start
    while end - position >= HEADER_SIZE:
        header = peek_header(view, position)
        assert header is not None
        if header.batch_length < MIN_BATCH_LENGTH:
            return position, _length_fault(header)
        if view[position + _MAGIC_AT] != CURRENT_MAGIC:
            return position, f"magic is {view[position + _MAGIC_AT]}, not {CURRENT_MAGIC}"
        if header.size > end - position:
            break
        crc = crc32c(view[position + CHECKSUM_START : position + header.size])
        if crc != header.crc:
            return position, _crc_fault(header, crc)
        position += header.size
    return position, None


def find_batch(buffer: Buffer, start: int, end: int, min_offset: int) -> int:
    """Where in [start, end) the next whole, valid batch at or above `min_offset` begins, or -1.

    The way past damage. Every byte is a candidate, so implausible headers are passed over
    before anything is summed.
    """
    view = _bounded(buffer, start, end)
    data = bytes(view[start:end])
    magic = bytes((CURRENT_MAGIC,))
    magic_at = data.find(magic, _MAGIC_AT)
    while magic_at != -1 and magic_at - _MAGIC_AT + HEADER_SIZE <= len(data):
        position = magic_at - _MAGIC_AT
        header = peek_header(data, position)
        if (
            header is not None
            and _is_plausible(header)
            and header.base_offset >= min_offset
            and header.size <= len(data) - position
            and crc32c(data[position + CHECKSUM_START : position + header.size]) == header.crc
        ):
            return start + position
        magic_at = data.find(magic, magic_at + 1)
    return -1


def _is_plausible(header: BatchHeader) -> bool:
    return (
        header.batch_length >= MIN_BATCH_LENGTH
        and not header.attributes & _RESERVED_ATTRIBUTES
        and header.last_offset_delta >= 0
        and 0 <= header.record_count <= header.last_offset_delta + 1
    )


def _bounded(buffer: Buffer, start: int, end: int) -> memoryview:
    view = memoryview(buffer)
    if not 0 <= start <= end <= len(view):
        raise ValueError(f"[{start}, {end}) is outside a buffer of {len(view)} bytes")
    return view


def _length_fault(header: BatchHeader) -> str:
    return f"batch length is {header.batch_length}, below {MIN_BATCH_LENGTH}"


def _crc_fault(header: BatchHeader, crc: int) -> str:
    return f"CRC-32C is {crc:08x}, the header says {header.crc:08x}"


def _check_record(view: memoryview, position: int, index: int) -> tuple[int, int, bool]:
    """Where the record at `position` ends, its timestamp delta and whether it has a key."""
    try:
        length, position = read_number(view, position, len(view), index)
    except CutShortError:
        raise BrokenRecordError(f"record {index} is cut short") from None
    if length < 0:
        raise BrokenRecordError(f"record {index} has a length of {length}")
    end = position + length
    if end > len(view):
        raise BrokenRecordError(f"record {index} is cut short")
    try:
        position, timestamp_delta, has_key = _check_body(view, position, end, index)
    except CutShortError:
        raise BrokenRecordError(f"record {index} runs past its length") from None
    if position != end:
        raise BrokenRecordError(f"record {index} is shorter than its length")
    return end, timestamp_delta, has_key


def _check_body(view: memoryview, position: int, end: int, index: int) -> tuple[int, int, bool]:
    if position == end:
        raise CutShortError
    timestamp_delta, position = read_number(view, position + 1, end, index, bits=64)
    offset_delta, position = read_number(view, position, end, index)
    if offset_delta != index:
        raise BrokenRecordError(f"record {index} has offset delta {offset_delta}")
    key_length, position = _skip_field(view, position, end, index)
    _, position = _skip_field(view, position, end, index)
    header_count, position = read_number(view, position, end, index)
    if header_count < 0:
        raise BrokenRecordError(f"record {index} has {header_count} headers")
    for _ in range(header_count):
        name_length, position = _skip_field(view, position, end, index)
        if name_length < 0:
            raise BrokenRecordError(f"record {index} has a header without a key")
        _, position = _skip_field(view, position, end, index)
    return position, timestamp_delta, key_length >= 0


def _skip_field(view: memoryview, position: int, end: int, index: int) -> tuple[int, int]:
    """Length of a key or value (-1 for null) and the position after it."""
    length, position = read_number(view, position, end, index)
    if length < -1:
        raise BrokenRecordError(f"record {index} has a field of {length} bytes")
    if length > end - position:
        raise CutShortError
    return length, position + max(length, 0)


def read_number(
    view: memoryview, position: int, end: int, index: int, bits: int = 32
) -> tuple[int, int]:
    raw = shift = 0
    while shift < bits:
        if position >= end:
            raise CutShortError
        byte = view[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> bits:
                break
            return raw >> 1 ^ -(raw & 1), position
        shift += 7
    raise BrokenRecordError(f"record {index} has a number that is too long")
