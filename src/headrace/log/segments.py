"""A log's segments, in order: what is one behind the other, and which one is appended to.

Invariants: there is always at least one segment. Base offsets ascend, and a closed segment ends
where the next one begins. The last is the `active` one, and no other is. Files of a segment that
has left the list are renamed first and removed after `file.delete.delay.ms`; a crash in between
leaves `.deleted` files, which the next open removes.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, overload

from headrace.config import LogConfig
from headrace.log.access import BLOCKING, Access
from headrace.log.cleaned_segment import CleanedSegment
from headrace.log.errors import CorruptBatchError
from headrace.log.files import FileCache
from headrace.log.index_cache import IndexCache
from headrace.log.segment import Segment, SegmentMark
from headrace.log.segment_check import examine_all, locate
from headrace.records.batch import HEADER_SIZE, peek_header

_BASE_OFFSET = attrgetter("base_offset")


class SegmentsMark(NamedTuple):
    """What `Segments.reset` needs to take rolls and appends back."""

    length: int
    active: Segment
    active_mark: SegmentMark


class Segments(Sequence[Segment]):
    """Owned by one `PartitionLog`, single-threaded. To be changed by its methods alone."""

    __slots__ = ("_deleted_files", "_directory", "_files", "_indexes", "_segments", "active")

    def __init__(
        self,
        directory: Path,
        segments: list[Segment],
        files: FileCache,
        indexes: IndexCache,
        config: LogConfig,
    ) -> None:
        """Take `segments`, which are in order; the last becomes the active one."""
        self._directory = directory
        self._files, self._indexes = files, indexes
        self._segments = segments
        self.active = segments[-1]
        self.active.activate(config)
        self._deleted_files: list[tuple[int, Path]] = []  # (when to remove it, renamed file)

    # -- looking ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._segments)

    @overload
    def __getitem__(self, index: int) -> Segment: ...
    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...
    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        return self._segments[index]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __contains__(self, segment: object) -> bool:
        return segment in self._segments

    @property
    def size_bytes(self) -> int:
        return sum([segment.size for segment in self._segments])

    def find(self, offset: int, access: Access = BLOCKING) -> tuple[Segment, int] | None:
        """(segment, position) of the first batch that ends at or behind `offset`."""
        segments = self._segments
        first = max(0, bisect_right(segments, offset, key=_BASE_OFFSET) - 1)
        for segment in segments[first:]:
            if segment.size or segment.damages:
                position = locate(segment, offset, access)
                if position < segment.size:
                    return segment, position
        return None

    # -- growing ---------------------------------------------------------------------------

    def set_index_interval(self, interval_bytes: int) -> None:
        """From now on index a batch every so many bytes."""
        for segment in self._segments:
            segment.index_interval_bytes = interval_bytes

    def roll(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Close the active segment, which is returned, and begin one at `base_offset`.

        Only creating the segment may fail, and then nothing has changed.
        """
        closed = self.active
        segment = self._create(base_offset, config, now_ms)
        closed.close_at(base_offset)
        segment.activate(config)
        self._segments.append(segment)
        self.active = segment
        return closed

    def _create(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        return Segment.create(
            self._directory,
            base_offset,
            self._files,
            self._indexes,
            config.index_interval_bytes,
            now_ms,
        )

    def mark(self) -> SegmentsMark:
        return SegmentsMark(len(self._segments), self.active, self.active.mark())

    def reset(self, mark: SegmentsMark) -> list[int]:
        """Undo every append and roll since `mark`; the base offsets of segments that are gone."""
        gone = self._segments[mark.length :]
        for segment in gone:
            segment.remove_files()
        del self._segments[mark.length :]
        self.active = mark.active
        self.active.reactivate()
        self.active.reset(mark.active_mark)
        return [segment.base_offset for segment in gone]

    # -- shrinking -------------------------------------------------------------------------

    def drop_first(self, due_ms: int) -> int:
        """Delete the first segment, which is not the active one; its base offset.

        Its files are removed from `due_ms` on, see `take_due_files`.
        """
        first = self._segments[0]
        try:
            self._delete_later(first, due_ms)
        finally:
            # What was renamed is gone for readers, even if a later rename failed.
            if not first.path.exists():
                del self._segments[0]
        return first.base_offset

    def replace_first(
        self,
        count: int,
        cleaned: Sequence[CleanedSegment],
        end_offsets: Sequence[int],
        config: LogConfig,
        due_ms: int,
    ) -> None:
        """Compacted segments take the place of the first `count`, of which they were made.

        They were announced, and the directory was synced since: on OSError the next start
        completes it, and until then what cannot be read is told to who asks.
        """
        try:
            for segment in self._segments[:count]:
                self._delete_later(segment, due_ms)
            for one in cleaned:
                one.put_in_place()
        finally:
            self._segments[:count] = [
                self._open_cleaned(one, end_offset, config)
                for one, end_offset in zip(cleaned, end_offsets, strict=True)
            ]

    def _open_cleaned(self, cleaned: CleanedSegment, end_offset: int, config: LogConfig) -> Segment:
        segment = Segment(
            self._directory,
            cleaned.base_offset,
            cleaned.size,
            self._files,
            self._indexes,
            config.index_interval_bytes,
            self._segments[0].created_ms,
        )
        segment.end_offset = end_offset
        segment.max_timestamp = cleaned.max_timestamp
        segment.max_timestamp_offset = cleaned.max_timestamp_offset
        segment.settle([])  # every batch was checked on its way here, in this process
        segment.time_index.open()
        return segment

    def truncate(self, offset: int, config: LogConfig) -> int:
        """Remove every batch that holds `offset` or more; where the log ends now."""
        kept = [segment for segment in self._segments if segment.base_offset <= offset]
        for segment in reversed(self._segments[len(kept) :]):
            segment.remove_files()
        if kept:
            kept[-1].reactivate()
            end = _cut_before(kept[-1], offset)
        else:
            end = offset
            kept = [self._create(offset, config, self.active.created_ms)]
            kept[0].activate(config)
        self._segments[:] = kept
        self.active = kept[-1]
        return end

    def _delete_later(self, segment: Segment, due_ms: int) -> None:
        self._deleted_files += [(due_ms, path) for path in segment.rename_deleted()]

    def take_due_files(self, now_ms: int) -> list[Path]:
        """Renamed files whose time has come. To remove them is now the caller's duty."""
        due = [path for due_ms, path in self._deleted_files if due_ms <= now_ms]
        if due:
            self._deleted_files = [one for one in self._deleted_files if one[0] > now_ms]
        return due

    # -- the end ---------------------------------------------------------------------------

    def flush(self) -> list[Path]:
        """Leave the files as a clean stop does; the active segment's indexes if they changed."""
        active = self.active
        had_pending = active.index.has_pending or active.time_index.has_pending
        active.time_index.maybe_append(active.max_timestamp, active.max_timestamp_offset)
        had_pending = had_pending or active.time_index.has_pending
        for segment in self._segments:
            segment.flush_indexes()
        if active.needs_cut:
            os.truncate(active.path, active.size)
        return [active.index.path, active.time_index.path] if had_pending else []

    def close(self) -> None:
        """Give descriptors and the room of indexes up."""
        for segment in self._segments:
            segment.file.close()
            if segment.index.is_loaded and not segment.is_active:
                self._indexes.release(segment.index)

    def remove_deleted_files(self) -> None:
        """Remove renamed files, however long they have waited."""
        for _, path in self._deleted_files:
            path.unlink(missing_ok=True)
        self._deleted_files = []


def _cut_before(segment: Segment, offset: int) -> int:
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
    segment.cut(position)
    segment.end_offset = end
    segment.damages = []
    examine_all(segment)
    segment.flush_indexes()
    return end
