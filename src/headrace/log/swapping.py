"""Compacted segments take the place of those they were made from.

Crash order: `.cleaned` to `.swap`, the highest offset first, so that a set with a `.cleaned` in
it is known to be incomplete; the directory is synced; only then the old files are renamed away
and `.swap` loses its suffix. Old files stay on disk for `file.delete.delay.ms`.
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import StorageWriteError
from headrace.log.cleaned_segment import CleanedSegment
from headrace.log.names import (
    CLEANED_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    segment_file,
)
from headrace.log.segment import Segment

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


def announce(cleaned: list[CleanedSegment]) -> None:
    """Rename to `.swap`: a crash from here on makes the next start put them in place."""
    for one in reversed(cleaned):
        for suffix in one.suffixes:
            one.path(suffix).rename(_swap_path(one, suffix))


def swap_segments(
    log: "PartitionLog",
    old: list[Segment],
    cleaned: list[CleanedSegment],
    end_offsets: list[int],
    now_ms: int,
) -> None:
    """Replace the first segments of `log`, which are `old`, by what was made of them.

    They were announced, and the directory was synced since.
    """
    due_ms = now_ms + log.config.file_delete_delay_ms
    try:
        for segment in old:
            log.doomed += [(due_ms, path) for path in segment.rename_deleted()]
        for one in cleaned:
            for suffix in one.suffixes:
                path = _swap_path(one, suffix)
                path.rename(path.with_name(path.name.removesuffix(SWAP_SUFFIX)))
    except OSError as error:
        # The next start completes it; until then what cannot be read is told to who asks.
        raise StorageWriteError(log.directory, error) from error
    finally:
        log.segments[: len(old)] = [
            _open(log, one, end_offset)
            for one, end_offset in zip(cleaned, end_offsets, strict=True)
        ]
        log.forget_hints()
    _remove_snapshots(log, old, cleaned)


def remove_cleaned(cleaned: list[CleanedSegment]) -> None:
    """Remove what a compaction wrote, under whichever name it has."""
    for one in cleaned:
        # The log last: an index without one would be taken for the old log's.
        for suffix in reversed(SEGMENT_SUFFIXES):
            for path in (one.path(suffix), _swap_path(one, suffix)):
                with suppress(OSError):
                    path.unlink(missing_ok=True)


def _swap_path(cleaned: CleanedSegment, suffix: str) -> Path:
    path = cleaned.path(suffix)
    return path.with_name(path.name.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX)


def _open(log: "PartitionLog", cleaned: CleanedSegment, end_offset: int) -> Segment:
    segment = Segment(
        log.directory,
        cleaned.base_offset,
        cleaned.size,
        log.files,
        log.indexes,
        log.config.index_interval_bytes,
        log.segments[0].created_ms,
    )
    segment.end_offset = end_offset
    segment.max_timestamp = cleaned.max_timestamp
    segment.max_timestamp_offset = cleaned.max_timestamp_offset
    # Every batch was checked on its way here, in this process.
    segment.is_max_sure = True
    segment.trusted_from = 0
    segment.time_index.open()
    return segment


def _remove_snapshots(
    log: "PartitionLog", old: list[Segment], cleaned: list[CleanedSegment]
) -> None:
    """A segment that was joined to the one before it needs no snapshot any more."""
    left = {one.base_offset for one in cleaned}
    for segment in old:
        if segment.base_offset not in left and segment.base_offset != log.snapshot_offset:
            with suppress(OSError):
                segment_file(log.directory, segment.base_offset, SNAPSHOT_SUFFIX).unlink()
