"""One segment: the stretch of a partition's log that lives in one file, and its indexes.

Invariant: every byte below `size` belongs to a whole batch or to a known or still
undiscovered damage; bytes at or behind `trusted_from` and outside `damages` were
checked in this process's life. `size` is what counts: bytes behind it are leftovers
of a failed write and are cut before the next one.
"""

import os
import random
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headrace.config import LogConfig
from headrace.log.access import BLOCKING, Access
from headrace.log.byte_ranges import ByteRanges
from headrace.log.files import CachedFile, FileCache
from headrace.log.index_cache import IndexCache
from headrace.log.names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    segment_file,
)
from headrace.log.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from headrace.log.offset_index import OffsetIndex
from headrace.log.scanner import Damage
from headrace.log.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from headrace.log.time_index import NO_TIMESTAMP, TimeIndex
from headrace.records.batch import HEADER, HEADER_SIZE, LENGTH_PREFIX_SIZE

MAX_RELATIVE_OFFSET = 2**31 - 1
_FLUSH_INDEX_ENTRIES = 512
_IOV_MAX = os.sysconf("SC_IOV_MAX") if "SC_IOV_MAX" in os.sysconf_names else 1024
_WALK_BYTES = 8192
_PLACE = struct.Struct(">qi11xi")  # base offset, batch length, last offset delta
_NOT_LOADED = -2

# Of a batch that is being appended: its size, last offset and maximum timestamp, and the
# length of the producers' undo list behind it.
BatchFacts = tuple[int, int, int, int]


class SegmentMark(NamedTuple):
    """What `Segment.reset` needs to undo appends."""

    size: int
    end_offset: int
    index_entries: int
    time_entries: int
    last_time_entry: tuple[int, int]
    indexed_position: int
    first_timestamp: int
    max_timestamp: int
    max_timestamp_offset: int


class Segment:
    """Not thread-safe: a partition has one writer, and readers share its thread."""

    __slots__ = (
        "base_offset", "created_ms", "damages", "directory", "end_offset", "examined", "file",
        "first_timestamp", "index", "index_interval_bytes", "indexed_position", "indexes",
        "is_active", "is_max_sure", "jitter_ms", "max_timestamp", "max_timestamp_offset",
        "needs_cut", "path", "size", "time_index", "trusted_from",
    )  # fmt: skip

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        size: int,
        files: FileCache,
        indexes: IndexCache,
        index_interval_bytes: int,
        created_ms: int,
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.path = segment_file(directory, base_offset, LOG_SUFFIX)
        self.file: CachedFile = files.cached(self.path)
        self.size = size
        self.index = OffsetIndex(segment_file(directory, base_offset, INDEX_SUFFIX), base_offset)
        self.time_index = TimeIndex(
            segment_file(directory, base_offset, TIME_INDEX_SUFFIX), base_offset
        )
        self.indexes = indexes
        self.index_interval_bytes = index_interval_bytes
        self.indexed_position = 0
        self.created_ms = created_ms
        self.first_timestamp = _NOT_LOADED  # maximum timestamp of the first batch
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        # Else `max_timestamp` comes from a file that may have lost its end: see time_lookup.
        self.is_max_sure = size == 0
        self.jitter_ms = 0
        self.is_active = False
        self.needs_cut = False
        self.trusted_from = size
        self.examined = ByteRanges()
        self.damages: list[Damage] = []

    @classmethod
    def create(
        cls,
        directory: Path,
        base_offset: int,
        files: FileCache,
        indexes: IndexCache,
        index_interval_bytes: int,
        now_ms: int,
    ) -> "Segment":
        """A new empty segment with its three files."""
        segment = cls(directory, base_offset, 0, files, indexes, index_interval_bytes, now_ms)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            for path in (segment.path, segment.index.path, segment.time_index.path):
                os.close(os.open(path, flags, 0o644))
        except OSError:
            segment.remove_files()
            raise
        segment.index.is_loaded = True
        return segment

    # -- appending ---------------------------------------------------------------------

    def should_roll(
        self, config: LogConfig, size: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether Kafka would begin a new segment before this batch."""
        if not self.size:
            return not self._fits(last_offset)
        return (
            self.size + size > config.segment_bytes
            or self._waited_ms(max_timestamp, now_ms) > config.segment_ms - self.jitter_ms
            or self._is_index_full(config, 0)
            or not self._fits(last_offset)
        )

    def has_room_for(
        self,
        config: LogConfig,
        count: int,
        size: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> bool:
        """Whether these `count` batches surely go into this segment, one after the other."""
        if self.size + size > config.segment_bytes or (not self.size and count > 1):
            return False
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return False
        if self._is_index_full(config, count - 1):
            return False
        if not self.size:
            return True
        return self._waited_ms(max_timestamp, now_ms) <= config.segment_ms - self.jitter_ms

    def _is_index_full(self, config: LogConfig, ahead: int) -> bool:
        # Kafka keeps the time index's last slot for the entry written when the segment closes.
        index_bytes = config.segment_index_bytes
        return (
            len(self.index.offsets) + ahead >= index_bytes // OFFSET_ENTRY_SIZE
            or self.time_index.count + ahead >= index_bytes // TIME_ENTRY_SIZE - 1
        )

    def _fits(self, last_offset: int) -> bool:
        return 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def _waited_ms(self, max_timestamp: int, now_ms: int) -> int:
        first = self.first_timestamp
        if first == _NOT_LOADED:
            first = self.first_timestamp = self._load_first_timestamp()
        return max_timestamp - first if first >= 0 else now_ms - self.created_ms

    def _load_first_timestamp(self) -> int:
        header = os.pread(self.file.get().fd, HEADER_SIZE, 0)
        if len(header) < HEADER_SIZE:
            return NO_TIMESTAMP
        timestamp: int = HEADER.unpack(header)[8]
        return timestamp

    def append(self, batches: list[memoryview], facts: list[BatchFacts], total: int) -> None:
        """Write whole batches at the end: all of them, or OSError and `size` unchanged."""
        fd = (self.file.file or self.file.get()).fd
        if self.needs_cut:
            os.ftruncate(fd, self.size)
            self.needs_cut = False
        position = self.size
        try:
            if len(batches) > _IOV_MAX or os.pwritev(fd, batches, position) != total:
                _write_in_pieces(fd, batches, position)
        except OSError:
            self.cut_leftovers()
            raise
        for size, last_offset, max_timestamp, _ in facts:
            if max_timestamp > self.max_timestamp:
                self.max_timestamp = max_timestamp
                self.max_timestamp_offset = last_offset
            if position - self.indexed_position > self.index_interval_bytes:
                self._add_index_entry(last_offset, position)
            position += size
        if not self.size:
            self.first_timestamp = facts[0][2]
        self.size = position
        self.end_offset = facts[-1][1] + 1

    def take_in(self, last_offset: int, max_timestamp: int, position: int) -> None:
        """Index a batch that is already in the file (a rebuild)."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position - self.indexed_position > self.index_interval_bytes:
            self.index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.indexed_position = position

    def _add_index_entry(self, last_offset: int, position: int) -> None:
        index = self.index
        index.append(last_offset, position)
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.indexed_position = position
        if len(index.offsets) - index.written >= _FLUSH_INDEX_ENTRIES:
            self.try_flush_indexes()

    def cut_leftovers(self) -> None:
        """Remove what a failed write left behind `size`; if that fails, before the next write."""
        self.needs_cut = True
        with suppress(OSError):
            os.ftruncate(self.file.get().fd, self.size)
            self.needs_cut = False

    def mark(self) -> SegmentMark:
        return SegmentMark(
            self.size,
            self.end_offset,
            len(self.index.offsets),
            self.time_index.count,
            (self.time_index.last_timestamp, self.time_index.last_offset),
            self.indexed_position,
            self.first_timestamp,
            self.max_timestamp,
            self.max_timestamp_offset,
        )

    def reset(self, mark: SegmentMark) -> None:
        """Undo every append since `mark`."""
        self.size, self.end_offset = mark.size, mark.end_offset
        self.cut_leftovers()
        with suppress(OSError):
            self.index.truncate(mark.index_entries)
            self.time_index.truncate(mark.time_entries, *mark.last_time_entry)
        self.indexed_position, self.first_timestamp = mark.indexed_position, mark.first_timestamp
        self.max_timestamp = mark.max_timestamp
        self.max_timestamp_offset = mark.max_timestamp_offset

    def flush_indexes(self) -> None:
        if self.index.has_pending:
            self.index.flush()
        if self.time_index.has_pending:
            self.time_index.flush()

    def try_flush_indexes(self) -> None:
        """As `flush_indexes`; on a full disk the entries wait in memory for the next time."""
        with suppress(OSError):
            self.flush_indexes()

    # -- being the active one ----------------------------------------------------------

    def activate(self, config: LogConfig) -> None:
        """Make it the one that is appended to."""
        self.is_active = True
        if config.segment_jitter_ms > 0:
            self.jitter_ms = random.randrange(min(config.segment_jitter_ms, config.segment_ms) or 1)

    def reactivate(self) -> None:
        """The segment behind it is gone: append to this one again."""
        if not self.is_active:
            self.is_active = True
            self.indexes.release(self.index)

    def close_at(self, end_offset: int) -> None:
        """The next segment begins at `end_offset`: this one takes no more batches."""
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.try_flush_indexes()
        self.is_active = False
        self.end_offset = end_offset
        self.indexes.admit(self.index)

    # -- finding -----------------------------------------------------------------------

    def boundary_near(self, position: int, limit: int, access: Access = BLOCKING) -> int:
        """A batch boundary behind `position`, the last known up to `limit`.

        At least the end of the batch at `position`, even if that is behind `limit`.
        """
        boundary = self.index.boundary_before(limit)
        if boundary > position:
            return boundary
        return self._walk_boundaries(position, limit, access)

    def _walk_boundaries(self, position: int, limit: int, access: Access) -> int:
        file = self.file.get()
        end = position
        while end < self.size:
            place = access.pread(file, _PLACE.size, end)
            if len(place) < _PLACE.size:
                break
            after = end + _PLACE.unpack(place)[1] + LENGTH_PREFIX_SIZE
            if after > limit and end > position:
                break
            if not end < after <= self.size:
                return self.size
            end = after
        return end

    def walk_to(self, offset: int, position: int, end: int, access: Access = BLOCKING) -> int:
        """Position of the first batch in [position, end) that ends at or behind `offset`.

        `end` when there is none. Only for bytes that were checked.
        """
        file = self.file.get()
        unpack = _PLACE.unpack_from
        while position < end:
            chunk = access.pread(file, min(_WALK_BYTES, end - position), position)
            at, last = 0, len(chunk) - _PLACE.size
            while at <= last:
                base_offset, length, delta = unpack(chunk, at)
                if base_offset + delta >= offset:
                    return position + at
                at += length + LENGTH_PREFIX_SIZE
                if length < 0:
                    return end
            if not at:
                return end
            position += at
        return end

    # -- what was written by another process, or is no more -----------------------------

    def believe_time_index(self) -> None:
        """Have the largest timestamp that the time index knows of, which was opened."""
        self.max_timestamp = self.time_index.last_timestamp
        self.max_timestamp_offset = self.time_index.last_offset

    def take_over_index(self, loaded: OffsetIndex) -> None:
        """Have the offset index that was loaded elsewhere from the segment's own file."""
        self.index.take_over(loaded)
        if not self.is_active:
            self.indexes.admit(self.index)

    def note_checked(self, start: int, end: int) -> None:
        """The batches in [start, end) are good."""
        self.examined.add(start, end)
        if self.examined.end_of(0) >= self.trusted_from:
            self.trusted_from = 0
            self.examined = ByteRanges()

    def clear_indexes(self) -> None:
        """Begin to index anew, by `take_in`."""
        self.index.clear()
        self.time_index.clear()
        self.indexed_position = 0
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset

    def settle(self, damages: list[Damage]) -> None:
        """Every batch was looked at: all are good and indexed, but for `damages`."""
        self.is_max_sure = True
        self.trusted_from = 0
        self.examined = ByteRanges()
        self.damages = damages

    def adopt(self, shadow: "Segment") -> None:
        """Have what was found by walking the same bytes elsewhere, with new indexes."""
        self.index.replace(shadow.index)
        self.time_index.replace(shadow.time_index)
        self.indexed_position = shadow.indexed_position
        self.max_timestamp = shadow.max_timestamp
        self.max_timestamp_offset = shadow.max_timestamp_offset
        self.settle(shadow.damages)

    def cut(self, position: int) -> None:
        """Take the bytes from `position` on out of the file; indexes are the caller's care."""
        os.ftruncate(self.file.get().fd, position)
        self.size = position

    # -- the end of its life ---------------------------------------------------------------

    def retire(self) -> None:
        """It is no longer a log's: what a thread finds out about it is not taken in any more."""
        self.indexes.release(self.index)
        self.file.close()
        self.damages = list(self.damages)  # see `examining.SegmentWatch`

    def rename_deleted(self) -> list[Path]:
        """Take the files out of the log's sight; the new names, to be removed later."""
        renamed = []
        self.retire()
        for suffix in SEGMENT_SUFFIXES:
            path = segment_file(self.directory, self.base_offset, suffix)
            target = path.with_name(path.name + DELETED_SUFFIX)
            with suppress(FileNotFoundError):
                path.rename(target)
                renamed.append(target)
        return renamed

    def remove_files(self) -> None:
        """Remove the files at once, as far as that goes."""
        self.retire()
        for suffix in SEGMENT_SUFFIXES:
            with suppress(OSError):
                segment_file(self.directory, self.base_offset, suffix).unlink()


def _write_in_pieces(fd: int, batches: list[memoryview], position: int) -> None:
    """Write everything from the start again, whatever a short write has done so far."""
    for start in range(0, len(batches), _IOV_MAX):
        views = batches[start : start + _IOV_MAX]
        while views:
            written = os.pwritev(fd, views, position)
            position += written
            while views and written >= len(views[0]):
                written -= len(views[0])
                views = views[1:]
            if written:
                views = [views[0][written:], *views[1:]]
