"""Find a producer's earlier batches in the log itself.

A snapshot holds each producer's last batch only, without its timestamp, and a retry after a
restart may be one of the four before it. The log still has them, close to its end.
"""

import os

from headrace.log.errors import CorruptBatchError
from headrace.log.producer_state import REMEMBERED_BATCHES, ProducerBatch, ProducerEntry
from headrace.log.scanner import scan_file
from headrace.log.segment import Segment
from headrace.log.segment_check import load_index
from headrace.log.segments import Segments
from headrace.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    MAX_SEQUENCE,
    NO_TIMESTAMP,
    Buffer,
    peek_header,
)

_STEP_BYTES = 256 * 1024
# A retry comes within the client's delivery timeout: nobody needs the whole log searched.
_SEARCHED_BYTES = 64 * 1024 * 1024
_SEARCHED_SEGMENTS = 6  # five batches may each have begun a segment, and a new one follows


def earlier_batches(
    segments: Segments, producer_id: int, entry: ProducerEntry
) -> list[ProducerBatch]:
    """What the log knows of this producer before its entry does, oldest first."""
    if not entry.batches:
        return []
    wanted = REMEMBERED_BATCHES - len(entry.batches)
    return _find_before(segments, producer_id, entry.epoch, entry.batches[0].base_offset, wanted)


def timestamp_of(segments: Segments, batch: ProducerBatch) -> int:
    """The largest timestamp of a batch; NO_TIMESTAMP when the log has it no more."""
    if batch.timestamp >= 0:
        return batch.timestamp
    try:
        found = segments.find(batch.base_offset)
    except CorruptBatchError:
        return NO_TIMESTAMP
    if found is None:
        return NO_TIMESTAMP
    segment, position = found
    header = peek_header(os.pread(segment.file.get().fd, HEADER_SIZE, position))
    if header is None or header.base_offset != batch.base_offset:
        return NO_TIMESTAMP
    return header.max_timestamp


def _find_before(
    segments: Segments, producer_id: int, epoch: int, offset: int, wanted: int
) -> list[ProducerBatch]:
    """The last `wanted` batches of the producer before `offset`, oldest first."""
    found: list[ProducerBatch] = []
    budget = _SEARCHED_BYTES
    before = [segment for segment in segments if segment.base_offset < offset]
    for segment in reversed(before[-_SEARCHED_SEGMENTS:]):
        try:
            load_index(segment)
        except CorruptBatchError:
            break
        end = segment.size
        while end > 0 and len(found) < wanted and budget > 0:
            start = segment.index.boundary_before(max(0, end - _STEP_BYTES))
            if start >= end:
                start = 0
            found = _batches_of(segment, start, end, producer_id, epoch, offset) + found
            budget -= end - start
            end = start
    return found[-wanted:] if wanted else []


def _batches_of(
    segment: Segment, start: int, end: int, producer_id: int, epoch: int, offset: int
) -> list[ProducerBatch]:
    batches: list[ProducerBatch] = []

    def visit(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
        if fields[9] != producer_id or fields[10] != epoch or fields[5] & CONTROL_BIT:
            return
        base_offset, delta, sequence = fields[0], fields[6], fields[11]
        if base_offset < offset and sequence >= 0:
            last_sequence = (sequence + delta) & MAX_SEQUENCE
            batches.append(ProducerBatch(last_sequence, base_offset + delta, delta, fields[8]))

    scan_file(segment.file.get().fd, start, end, segment.base_offset, visit)
    return batches
