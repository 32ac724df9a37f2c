"""Cutting the end of a log off (a follower's duty in Kafka; here for tools and tests)."""

import os
from typing import TYPE_CHECKING

from headrace.errors import CorruptBatchError, StorageWriteError
from headrace.log import rolling
from headrace.log.producer_rebuild import load_producers, remove_stray_snapshots
from headrace.log.segment import Segment
from headrace.log.segment_check import examine_all, locate
from headrace.records.batch import HEADER_SIZE, peek_header

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


def truncate(log: "PartitionLog", offset: int) -> None:
    """Remove every batch that holds `offset` or more.

    The log then ends at `offset`, or where the batch began that held it.
    """
    if offset >= log.log_end_offset:
        return
    try:
        _truncate(log, offset)
    except OSError as error:
        raise StorageWriteError(log.directory, error) from error


def _truncate(log: "PartitionLog", offset: int) -> None:
    segments = log.segments
    kept = [segment for segment in segments if segment.base_offset <= offset]
    for segment in reversed(segments[len(kept) :]):
        segment.remove_files()
    if kept:
        rolling.reactivate(kept[-1])
        end = _cut(kept[-1], offset)
    else:
        end = offset
        interval = log.config.index_interval_bytes
        created_ms = segments[-1].created_ms
        kept = [Segment.create(log.directory, offset, log.files, log.indexes, interval, created_ms)]
        rolling.activate(kept[0], log.config.segment_jitter_ms, log.config.segment_ms)
    segments[:] = kept
    log.forget_hints()
    log.log_end_offset = end
    log.log_start_offset = min(log.log_start_offset, end)
    log.recovery_point = min(log.recovery_point, end)
    log.cleaner_offset = min(log.cleaner_offset, segments[-1].base_offset)
    log.epochs.cut_end(end)
    log.epochs.assign(log.leader_epoch, end)
    log.epochs.write()
    remove_stray_snapshots(log.directory, segments, end)
    # Who was known before the cut stays known, and was last heard of when it was.
    known = log.producers.entries
    rebuilt, log.snapshot_offset = load_producers(log.directory, segments, end, 0, [])
    log.producers.entries = {
        producer_id: entry._replace(last_append_ms=known[producer_id].last_append_ms)
        for producer_id, entry in rebuilt.entries.items()
        if producer_id in known
    }
    rolling.note_new_files(log, end)


def _cut(segment: Segment, offset: int) -> int:
    """Cut the file before the batch that holds `offset`; where the log ends now."""
    end = offset
    try:
        position = locate(segment, offset)
        header = peek_header(os.pread(segment.file.get().fd, HEADER_SIZE, position))
        if header is not None:
            end = min(offset, header.base_offset)
    except CorruptBatchError as error:
        position = error.position
        end = min(d.offset_start for d in segment.damages if d.start >= position)
    os.ftruncate(segment.file.get().fd, position)
    segment.size = position
    segment.end_offset = end
    segment.damages = []
    examine_all(segment)
    segment.flush_indexes()
    return end
