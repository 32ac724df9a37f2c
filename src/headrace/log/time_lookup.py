"""From a time to an offset: the time index leads near, then batch headers decide."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
        if segment.max_timestamp < timestamp_ms:
            continue
        found = _first_in(segment, timestamp_ms, log.log_start_offset)
        if found is not None:
            return found
    return None


def first_of_max_timestamp(log: "PartitionLog") -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with the largest timestamp in the log."""
    best: tuple[int, int] | None = None
    for segment in sorted(_visible_segments(log), key=lambda s: (-s.max_timestamp, s.base_offset)):
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


def _first_in(segment: Segment, timestamp_ms: int, start_offset: int) -> tuple[int, int] | None:
    if segment.time_index.find_fault() is not None:
        examine_all(segment)
        segment.try_flush_indexes()
    offset = max(segment.time_index.lookup(timestamp_ms), start_offset)
    for position, fields in _headers(segment, locate(segment, offset)):
        if fields[8] < timestamp_ms:
            continue
        size = fields[1] + LENGTH_PREFIX_SIZE
        batch = os.pread(segment.file.get().fd, size, position)
        for record in iter_records(batch):
            if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                return record.timestamp, record.offset
    return None


def _max_in(segment: Segment, start_offset: int) -> tuple[int, int] | None:
    timestamps = [fields[8] for _, fields in _headers(segment, locate(segment, start_offset))]
    for timestamp in sorted(set(timestamps), reverse=True):
        if timestamp < 0:
            break
        found = _first_in(segment, timestamp, start_offset)
        if found is not None:
            return found
    return None


def _headers(segment: Segment, position: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(position, header fields) of the checked batches from `position` to the end."""
    while position < segment.size:
        end = checked_end(segment, position, position + _STEP_BYTES)
        data = os.pread(segment.file.get().fd, end - position, position)
        at = 0
        while at + HEADER_SIZE <= len(data):
            fields = HEADER.unpack_from(data, at)
            yield position + at, fields
            at += fields[1] + LENGTH_PREFIX_SIZE
        position = end
