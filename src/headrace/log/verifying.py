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
from headrace.log.examining import SegmentChangedError, SegmentWatch, examine
from headrace.log.files import OpenFile
from headrace.log.offset_index import OffsetIndex
from headrace.log.segment import Segment
from headrace.log.segment_check import FaultFoundError, SegmentSnapshot

# What one request has checked before it is answered with it: a millisecond or two of a thread. A
# fetch may return less than it was allowed to.
CHECK_BYTES = 4 * 1024 * 1024
# Asked of the kernel behind what was just read: it is on its way while this is being sent.
READ_AHEAD_BYTES = 4 * 1024 * 1024
_SCRATCH_BYTES = 256 * 1024


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
        segment = self._segment
        if segment.index.is_loaded or segment.size != self._size:
            return None
        if result is not None:
            return _Examining(segment)
        segment.take_over_index(self._loaded)
        return None


class _Checking:
    __slots__ = ("_position", "_segment", "_stop", "_stretch")

    def __init__(self, segment: Segment, position: int) -> None:
        self._segment = segment
        self._position = position
        self._stretch = SegmentSnapshot.of(segment)
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
        segment.note_checked(self._position, min(result, segment.trusted_from))
        return None


class _Examining:
    """`examine`, a job at a time."""

    __slots__ = ("_job", "_steps")

    def __init__(self, segment: Segment) -> None:
        self._steps = examine(segment, SegmentWatch(None, segment))
        self._job = next(self._steps)

    def run(self) -> object:
        """Walk the segment, or what came behind it since the last time."""
        return self._job()

    def apply(self, result: object) -> Preparation | None:
        """Go on; None when the segment has its indexes and its damage, or is another one now."""
        try:
            self._job = self._steps.send(result)
        except (StopIteration, SegmentChangedError):
            return None
        return self
