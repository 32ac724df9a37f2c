"""What a read that may not wait needs first: pages, an index, checksums. Work for a thread.

    try:
        slices = log.read(offset, max_bytes, access=RESIDENT)
    except NotReadyError as error:
        preparation = prepare(error.need)      # here, on the event loop
        result = preparation.run()             # in any thread
        following = preparation.apply(result)  # on the event loop again

`apply` returns None, or a further preparation to be run the same way; then the read is tried
again. `run` sees descriptors and values that nobody changes; only `prepare` and `apply` touch
segments. What was found is applied to what the segment still has of it: a log that was cut,
rolled, deleted or replaced meanwhile takes no harm.
"""

import os
from contextlib import suppress
from typing import Any, Protocol

from headrace.log.access import CHECK, INDEX, Need, Warm
from headrace.log.files import FileCache, OpenFile
from headrace.log.offset_index import OffsetIndex
from headrace.log.ranges import Ranges
from headrace.log.scanner import scan_file
from headrace.log.segment import Segment
from headrace.log.segment_check import (
    FaultFoundError,
    Stretch,
    examine_all,
    note_checked,
)
from headrace.records.batch import Buffer

# What one request has checked before it is answered with it: a millisecond or two of a thread. A
# fetch may return less than it was allowed to.
CHECK_BYTES = 4 * 1024 * 1024
# Asked of the kernel behind what was just read: it is on its way while this is being sent.
READ_AHEAD_BYTES = 4 * 1024 * 1024
_SCRATCH_BYTES = 256 * 1024
# The end of a segment that grew while it was examined: up to this much is looked at on the loop.
_TAIL_BYTES = 256 * 1024


class Preparation(Protocol):
    """One piece of work: `run` in a thread, then `apply` on the event loop."""

    def run(self) -> Any:
        """Read and check. OSError when the disk fails."""

    def apply(self, result: Any) -> "Preparation | None":
        """Take in what `run` returned; what must be run next, if anything."""


def prepare(need: Warm | Need) -> Preparation:
    """The work that makes `need` good."""
    if isinstance(need, Warm):
        return Warming(need.file, need.position, need.length)
    segment = need.segment
    assert isinstance(segment, Segment)
    if need.kind == INDEX:
        return _IndexLoading(segment)
    if need.kind == CHECK:
        return _Checking(segment, need.position)
    return _Examining(segment)


class Warming:
    """Bring a stretch of a file into the page cache, and ask for what follows it."""

    __slots__ = ("_file", "_length", "_position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self._file, self._position, self._length = file, position, length

    def run(self) -> None:
        """Read it into a scratch buffer; the kernel keeps the pages."""
        fd, position, left = self._file.fd, self._position, self._length
        scratch = memoryview(bytearray(min(left, _SCRATCH_BYTES)))
        while left > 0 and (count := os.preadv(fd, (scratch[:left],), position)):
            position += count
            left -= count
        read_ahead(fd, position)

    def apply(self, result: None) -> None:
        """Nothing to take in."""


def read_ahead(fd: int, position: int) -> None:
    """Have the kernel read what lies behind `position`, without waiting for it."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # it is only advice
            os.posix_fadvise(fd, position, READ_AHEAD_BYTES, os.POSIX_FADV_WILLNEED)


class _IndexLoading:
    __slots__ = ("_loaded", "_segment", "_size")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._size = segment.size
        self._loaded = OffsetIndex(segment.index.path, segment.base_offset)

    def run(self) -> str | None:
        """Read the file into an index of its own; the fault when it is bad."""
        return self._loaded.load(self._size)

    def apply(self, result: str | None) -> Preparation | None:
        """Take the entries in, unless somebody else was faster."""
        segment, loaded = self._segment, self._loaded
        index = segment.index
        if index.is_loaded or segment.size != self._size:
            return None
        if result is not None:
            return _Examining(segment)
        index.offsets, index.positions = loaded.offsets, loaded.positions
        index.written = loaded.written
        index.is_loaded = True
        if not segment.is_active:
            segment.indexes.admit(index)
        return None


class _Checking:
    __slots__ = ("_position", "_segment", "_stop", "_stretch")

    def __init__(self, segment: Segment, position: int) -> None:
        self._segment = segment
        self._position = position
        self._stretch = Stretch.of(segment)
        behind = segment.examined.start_behind(position)
        self._stop = min(
            position + CHECK_BYTES, segment.trusted_from, segment.size if behind is None else behind
        )

    def run(self) -> int | None:
        """The end of the good batches, at least one; None when the first is not good."""
        position, stretch = self._position, self._stretch
        try:
            end = stretch.scan(position, self._stop)
            if end == position:
                end = stretch.scan_one(position)
        except FaultFoundError:
            return None
        read_ahead(stretch.file.fd, end)
        return end

    def apply(self, result: int | None) -> Preparation | None:
        """Note what was checked. What lies below `trusted_from` has not changed since."""
        segment = self._segment
        if result is None:
            return _Examining(segment)
        note_checked(segment, self._position, min(result, segment.trusted_from))
        return None


class _Examining:
    """`examine_all` on a copy that only the thread has; what it finds is moved over at the end."""

    __slots__ = ("_copy", "_goal", "_is_begun", "_segment")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._is_begun = False
        self._copy = copy = Segment(
            segment.directory,
            segment.base_offset,
            segment.size,
            FileCache(1),
            segment.indexes,
            segment.index_interval_bytes,
            segment.created_ms,
        )
        copy.file.file = segment.file.get()
        copy.end_offset = segment.end_offset
        copy.damages = list(segment.damages)
        copy.is_active = segment.is_active
        self._goal = (copy.size, copy.end_offset)

    def run(self) -> None:
        """Walk the segment from its start, or what came behind it since the last time."""
        if self._is_begun:
            self._walk_tail()
        else:
            self._is_begun = True
            examine_all(self._copy)

    def _walk_tail(self) -> None:
        copy = self._copy
        size, end_offset = self._goal

        def see(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
            copy.take_in(fields[0] + fields[6], fields[8], position)

        scan_file(copy.file.get().fd, copy.size, size, copy.end_offset, see)
        copy.size, copy.end_offset = size, end_offset

    def apply(self, result: None) -> Preparation | None:
        """Give the segment its new indexes and its damage, once they reach to its end."""
        segment, copy = self._segment, self._copy
        if segment.size < copy.size:
            return None  # it was cut, and walked by whoever cut it
        if segment.size > copy.size:
            self._goal = (segment.size, segment.end_offset)
            if segment.size - copy.size > _TAIL_BYTES:
                return self
            self._walk_tail()
        was_loaded = segment.index.is_loaded
        for name in ("offsets", "positions", "written", "is_stale", "is_loaded"):
            setattr(segment.index, name, getattr(copy.index, name))
        times = segment.time_index
        for name in (
            "pending", "count", "last_timestamp", "last_offset", "is_checked", "is_stale",
        ):  # fmt: skip
            setattr(times, name, getattr(copy.time_index, name))
        for name in (
            "indexed_position", "max_timestamp", "max_timestamp_offset", "is_max_sure", "damages",
        ):  # fmt: skip
            setattr(segment, name, getattr(copy, name))
        segment.trusted_from = 0
        segment.examined = Ranges()
        if not segment.is_active:
            times.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
            if not was_loaded:
                segment.indexes.admit(segment.index)
        segment.try_flush_indexes()
        return None
