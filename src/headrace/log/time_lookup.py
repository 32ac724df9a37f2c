"""From a time to an offset: the time index leads near, then batch headers decide."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.errors import CorruptBatchError
from headrace.log.segment import Segment
from headrace.log.segment_check import checked_end, examine_all, locate
from headrace.records.batch import HEADER, HEADER_SIZE, LENGTH_PREFIX_SIZE
from headrace.records.record import iter_records

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

_STEP_BYTES = 64 * 1024


def first_at_or_after(log: "PartitionLog", timestamp_ms: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record at or after `timestamp_ms`."""
    for segment in _visible_segments(log):
        if sure_max_timestamp(segment) < timestamp_ms:
            continue
        found = _first_in(segment, timestamp_ms, log.log_start_offset)
        if found is not None:
            return found
    return None


def first_of_max_timestamp(log: "PartitionLog") -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with the largest timestamp in the log."""
    best: tuple[int, int] | None = None
    segments = _visible_segments(log)
    for segment in sorted(segments, key=lambda s: (-sure_max_timestamp(s), s.base_offset)):
        if segment.max_timestamp < 0 or (best and segment.max_timestamp <= best[0]):
            break
        found = _first_in(segment, segment.max_timestamp, log.log_start_offset)
        if found is None:
            # Its maximum lies below the log start offset: look at what is left of it.
            found = _max_in(segment, log.log_start_offset)
        if found and (best is None or found[0] > best[0]):
            best = found
    return best


def _visible_segments(log: "PartitionLog") -> list[Segment]:
    start = log.log_start_offset
    return [segment for segment in log.segments if segment.size and segment.end_offset > start]


def sure_max_timestamp(segment: Segment) -> int:
    """The largest timestamp in the segment, by the batches and not only by the time index.

    A time index that lost its end would make the segment look older than it is, and
    retention would delete what must stay. Looked at once; the index leads near the end.
    """
    if not segment.is_max_sure:
        start = _position_of(segment, segment.max_timestamp_offset)
        newest = max((fields[8] for _, fields in _headers(segment, start)), default=-1)
        if newest != segment.max_timestamp and not segment.is_max_sure:
            examine_all(segment)
            segment.try_flush_indexes()
        segment.is_max_sure = True
    return segment.max_timestamp


def _position_of(segment: Segment, offset: int) -> int:
    """Where to begin reading headers so that none at or behind `offset` is missed."""
    try:
        return locate(segment, offset)
    except CorruptBatchError:
        return 0


def _first_in(segment: Segment, timestamp_ms: int, start_offset: int) -> tuple[int, int] | None:
    if segment.time_index.find_fault() is not None:
        examine_all(segment)
        segment.try_flush_indexes()
    offset = max(segment.time_index.lookup(timestamp_ms), start_offset)
    for position, fields in _headers(segment, _position_of(segment, offset)):
        if fields[8] < timestamp_ms:
            continue
        size = fields[1] + LENGTH_PREFIX_SIZE
        batch = os.pread(segment.file.get().fd, size, position)
        for record in iter_records(batch):
            if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                return record.timestamp, record.offset
    return None


def _max_in(segment: Segment, start_offset: int) -> tuple[int, int] | None:
    timestamps = [fields[8] for _, fields in _headers(segment, _position_of(segment, start_offset))]
    for timestamp in sorted(set(timestamps), reverse=True):
        if timestamp < 0:
            break
        found = _first_in(segment, timestamp, start_offset)
        if found is not None:
            return found
    return None


def _headers(segment: Segment, position: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(position, header fields) of the good batches from `position` to the end."""
    while position < segment.size:
        try:
            end = checked_end(segment, position, position + _STEP_BYTES)
        except CorruptBatchError:
            ends = [damage.end for damage in segment.damages if damage.start == position]
            position = ends[0] if ends else segment.size
            continue
        data = os.pread(segment.file.get().fd, end - position, position)
        at = 0
        while at + HEADER_SIZE <= len(data):
            fields = HEADER.unpack_from(data, at)
            yield position + at, fields
            at += fields[1] + LENGTH_PREFIX_SIZE
        position = end
