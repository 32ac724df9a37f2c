"""Letting old data go: by time, by size, and below the log start offset.

What goes is decided here; the log drops it (`PartitionLog.drop_segments`).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from headrace.log.examining import SegmentChangedError
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_rebuild import forget_silent
from headrace.log.segment import Segment
from headrace.log.steps import Steps, run_here
from headrace.log.time_lookup import sure_max_timestamp

RemoveFiles = Callable[[list[Path]], None]


def remove_files(paths: list[Path]) -> None:
    """Remove files that retention has renamed; what cannot be removed goes at the next open."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def enforce_retention(log: PartitionLog, now_ms: int, remove: RemoveFiles = remove_files) -> int:
    """Delete segments that are too old, too many or hidden; how many. Forget silent producers.

    Files whose time has come are given to `remove`: unlinking large ones takes long.
    """
    try:
        forget_silent(log.producers, now_ms, log.producer_expiration_ms)
        deleted = _drop(log, _count_hidden(log), now_ms)
        if log.config.is_deleting:
            deleted += _drop(log, _count_oversized(log), now_ms)
            deleted += _drop(log, _count_expired(log, now_ms), now_ms)
        return deleted
    finally:
        due = log.segments.take_due_files(now_ms)
        if due:
            remove(due)


def prepare_retention(log: PartitionLog, now_ms: int) -> Steps[None]:
    """Look into the segments that seem to be too old, so that `enforce_retention` need not."""
    limit = log.config.retention_ms
    if limit is None or not log.config.is_deleting:
        return
    for segment in tuple(log.segments):
        if segment.max_timestamp >= now_ms - limit:
            break
        try:
            yield from sure_max_timestamp(log.segments, segment)
        except SegmentChangedError:
            break


def _drop(log: PartitionLog, count: int, now_ms: int) -> int:
    if count:
        log.drop_segments(count, now_ms)
    return count


def _count_hidden(log: PartitionLog) -> int:
    """Segments whose successor begins at or below the log start offset."""
    count = 0
    for successor in log.segments[1:]:
        if successor.base_offset > log.log_start_offset:
            break
        count += 1
    return count


def _count_oversized(log: PartitionLog) -> int:
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


def _count_expired(log: PartitionLog, now_ms: int) -> int:
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


def _deletable(log: PartitionLog) -> Sequence[Segment]:
    """All segments, but not an active one that is empty."""
    return log.segments if log.segments.active.size else log.segments[:-1]


def _largest_timestamp(segment: Segment) -> int:
    while True:
        try:
            timestamp = run_here(sure_max_timestamp(None, segment))
            break
        except SegmentChangedError:
            continue
    if timestamp >= 0:
        return timestamp
    return segment.path.stat().st_mtime_ns // 1_000_000
