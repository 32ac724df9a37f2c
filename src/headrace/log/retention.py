"""Letting old data go: by time, by size, and below the log start offset.

Files are renamed first and removed after `file.delete.delay.ms`; a crash in between
leaves `.deleted` files, which the next open removes.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import OffsetOutOfRangeError, StorageWriteError
from headrace.log import rolling
from headrace.log.names import SNAPSHOT_SUFFIX, segment_file
from headrace.log.producer_rebuild import forget_silent
from headrace.log.segment import Segment
from headrace.log.time_lookup import sure_max_timestamp

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

_TO_THE_END = -1

RemoveFiles = Callable[[list[Path]], None]


def delete_records(log: "PartitionLog", offset: int) -> int:
    """Move the log start offset up; segments below it go with the next `enforce`."""
    end = log.log_end_offset
    if offset == _TO_THE_END:
        offset = end
    if not 0 <= offset <= end:
        raise OffsetOutOfRangeError(offset, log.log_start_offset, end)
    if offset > log.log_start_offset:
        _raise_start(log, offset)
    return log.log_start_offset


def enforce(log: "PartitionLog", now_ms: int, remove: RemoveFiles) -> int:
    """Delete what retention says; how many segments. `remove` gets the files that are due."""
    try:
        forget_silent(log.producers, now_ms, log.producer_expiration_ms)
        deleted = _drop(log, _count_hidden(log), now_ms)
        if log.config.is_deleting:
            deleted += _drop(log, _count_oversized(log), now_ms)
            deleted += _drop(log, _count_expired(log, now_ms), now_ms)
        return deleted
    finally:
        due = [path for due_ms, path in log.doomed if due_ms <= now_ms]
        if due:
            log.doomed = [(due_ms, path) for due_ms, path in log.doomed if due_ms > now_ms]
            remove(due)


def remove_files(paths: list[Path]) -> None:
    """Remove files that retention has renamed; what cannot be removed goes at the next open."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _count_hidden(log: "PartitionLog") -> int:
    """Segments whose successor begins at or below the log start offset."""
    count = 0
    for successor in log.segments[1:]:
        if successor.base_offset > log.log_start_offset:
            break
        count += 1
    return count


def _count_oversized(log: "PartitionLog") -> int:
    limit = log.config.retention_bytes
    if limit is None:
        return 0
    excess = log.size_bytes - limit
    count = 0
    for segment in _deletable(log):
        if excess - segment.size < 0:
            break
        excess -= segment.size
        count += 1
    return count


def _count_expired(log: "PartitionLog", now_ms: int) -> int:
    limit = log.config.retention_ms
    if limit is None:
        return 0
    count = 0
    for segment in _deletable(log):
        if segment.max_timestamp >= now_ms - limit:
            break
        if now_ms - _largest_timestamp(segment) <= limit:
            break
        count += 1
    return count


def _deletable(log: "PartitionLog") -> list[Segment]:
    """All segments, but not an active one that is empty."""
    return log.segments if log.segments[-1].size else log.segments[:-1]


def _largest_timestamp(segment: Segment) -> int:
    timestamp = sure_max_timestamp(segment)
    if timestamp >= 0:
        return timestamp
    return segment.path.stat().st_mtime_ns // 1_000_000


def _drop(log: "PartitionLog", count: int, now_ms: int) -> int:
    """Delete the first `count` segments; a new active one is begun when that is all."""
    if not count:
        return 0
    due_ms = now_ms + log.config.file_delete_delay_ms
    try:
        if count == len(log.segments):
            rolling.roll(log, log.log_end_offset, log.producers.as_of(0), now_ms)
        for segment in log.segments[:count]:
            log.doomed += [(due_ms, path) for path in segment.rename_deleted()]
            snapshot = segment_file(log.directory, segment.base_offset, SNAPSHOT_SUFFIX)
            snapshot.unlink(missing_ok=True)
    except OSError as error:
        raise StorageWriteError(log.directory, error) from error
    finally:
        # What was renamed is gone for readers, even if a later rename failed.
        log.segments[:] = [s for s in log.segments if s.path.exists()] or log.segments
        log.forget_hints()
    _raise_start(log, log.segments[0].base_offset)
    return count


def _raise_start(log: "PartitionLog", offset: int) -> None:
    if offset <= log.log_start_offset:
        return
    log.log_start_offset = offset
    log.epochs.cut_start(offset)
    try:
        log.epochs.write()
    except OSError as error:
        raise StorageWriteError(log.directory, error) from error
