"""Finding by time in Python: what `_scan_find.h` does, for machines that could not build it.

Both give the same answers, sentence for sentence; a test holds them together.
"""

import struct
from collections.abc import Iterator

from headrace.records.batch import HEADER, HEADER_SIZE, LENGTH_PREFIX_SIZE, MIN_BATCH_LENGTH, Buffer
from headrace.records.scan_fallback import BrokenRecordError, CutShortError, read_number

_TIME_ENTRY = struct.Struct(">qi")
_LEAST, _MOST = -(2**63), 2**63 - 1


def find_record(
    records: Buffer,
    count: int,
    base_timestamp: int,
    base_offset: int,
    is_append_time: bool,
    timestamp: int,
    start_offset: int,
) -> tuple[int, int] | str | None:
    """(timestamp, offset) of the first of `count` plain records at or after `timestamp`.

    Only those at or behind `start_offset` count; None when there is none, a sentence when these
    are no records. With `is_append_time` every record's time is `base_timestamp`.
    """
    try:
        for time, offset in _times(records, count, base_timestamp, base_offset, is_append_time):
            if offset >= start_offset and time >= timestamp:
                return time, offset
    except BrokenRecordError as fault:
        return str(fault)
    return None


def find_newest(
    records: Buffer,
    count: int,
    base_timestamp: int,
    base_offset: int,
    is_append_time: bool,
    start_offset: int,
) -> tuple[int, int] | str | None:
    """As `find_record`, but the first record of those with the largest timestamp."""
    newest: tuple[int, int] | None = None
    try:
        for time, offset in _times(records, count, base_timestamp, base_offset, is_append_time):
            if offset >= start_offset and (newest is None or time > newest[0]):
                newest = time, offset
    except BrokenRecordError as fault:
        return str(fault)
    return newest


def find_header(
    buffer: Buffer, start: int, timestamp: int, start_offset: int
) -> tuple[int, bool, int]:
    """Walk checked batches from `start` on to the first that may hold what is wanted.

    (its position, True, largest timestamp seen), or False with the position behind the last whole
    header, which may lie behind the buffer; or -1 - position where no header can be.
    """
    if start < 0:
        raise ValueError(f"byte {start} is outside a buffer")
    position, newest = start, -1
    while position + HEADER_SIZE <= len(buffer):
        fields = HEADER.unpack_from(buffer, position)
        last_offset = fields[0] + fields[6]
        if fields[1] < MIN_BATCH_LENGTH or not _LEAST <= last_offset <= _MOST:
            return -1 - position, False, newest
        if last_offset >= start_offset:
            newest = max(newest, fields[8])
            if fields[8] >= timestamp:
                return position, True, newest
        position += fields[1] + LENGTH_PREFIX_SIZE
    return position, False, newest


def find_disorder(entries: Buffer) -> int:
    """Number of the first entry of a time index that is not above the one before; -1 if none."""
    last_timestamp = last_offset = -1
    whole = memoryview(entries)[: len(entries) // _TIME_ENTRY.size * _TIME_ENTRY.size]
    for index, (timestamp, offset) in enumerate(_TIME_ENTRY.iter_unpack(whole)):
        if timestamp <= last_timestamp or offset <= last_offset:
            return index
        last_timestamp, last_offset = timestamp, offset
    return -1


def _times(
    records: Buffer, count: int, base_timestamp: int, base_offset: int, is_append_time: bool
) -> Iterator[tuple[int, int]]:
    if count < 0:
        raise BrokenRecordError(f"the batch counts {count} records")
    view = memoryview(records)
    position = 0
    for index in range(count):
        try:
            length, position = read_number(view, position, len(view), index, 32)
        except CutShortError:
            raise BrokenRecordError(f"record {index} is cut short") from None
        if length < 0:
            raise BrokenRecordError(f"record {index} has a length of {length}")
        end = position + length
        if end > len(view):
            raise BrokenRecordError(f"record {index} is cut short")
        try:
            if position == end:
                raise CutShortError
            time_delta, position = read_number(view, position + 1, end, index, 64)
            offset_delta, position = read_number(view, position, end, index, 32)
        except CutShortError:
            raise BrokenRecordError(f"record {index} runs past its length") from None
        time = base_timestamp if is_append_time else base_timestamp + time_delta
        offset = base_offset + offset_delta
        if not (_LEAST <= time <= _MOST and _LEAST <= offset <= _MOST):
            raise BrokenRecordError(f"record {index} has a time or an offset beyond 64 bits")
        yield time, offset
        position = end
