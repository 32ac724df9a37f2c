"""The walk from batch to batch that a lookup by time makes; runs in any thread.

It sees a segment as an open file and numbers that no longer change. Bytes nobody has checked in
this process's life are checked on the way, and what was checked is told, for the segment's owner
to note. A walk does a piece at a time, so that many walks share a few threads fairly.
"""

from enum import Enum
from typing import NamedTuple

from headrace.log.files import OpenFile, pread_fully
from headrace.log.scanner import scan_file
from headrace.records.batch import HEADER, HEADER_SIZE, LENGTH_PREFIX_SIZE, peek_header
from headrace.records.find import find_header, first_record, newest_record

# One `go` reads about so much: 10 ms from memory, 200 ms from a slow disk.
_SLICE_BYTES = 16 * 1024 * 1024
# Batches are checked in steps, for the first one that matches ends the walk; and while Python
# looks at the headers of a step it holds its lock, half a millisecond for the smallest batches.
_STEP_BYTES = 64 * 1024
_PIECE_BYTES = 256 * 1024
_NEVER = 2**63 - 1


class WalkedSegment(NamedTuple):
    """What a thread may see of a segment."""

    file: OpenFile
    base_offset: int
    end_offset: int
    size: int
    trusted_from: int
    holes: tuple[tuple[int, int], ...]  # known damage, in order


class Goal(Enum):
    """What a walk looks for."""

    FIRST = "the first record at or after a time"
    NEWEST = "the first record of the largest time"
    NEWEST_HEADER = "the largest time in any batch's header"


class Walk:
    """One walk. Whoever made it looks at it again only when `go` has returned."""

    __slots__ = (
        "_entry_offset",
        "_goal",
        "_next_offset",
        "_position",
        "_segment",
        "_start_offset",
        "_threshold",
        "checked",
        "fault",
        "found",
        "newest",
    )  # fmt: skip

    def __init__(
        self,
        segment: WalkedSegment,
        goal: Goal,
        position: int,
        *,
        timestamp: int = 0,
        start_offset: int = 0,
        entry_offset: int | None = None,
    ) -> None:
        """Begin at `position`, where by the index a batch lies that ends with `entry_offset`."""
        self._segment = segment
        self._goal = goal
        self._position = position
        self._entry_offset = entry_offset
        self._start_offset = start_offset
        self._next_offset = segment.base_offset
        # Of no interest are batches whose largest timestamp is below this.
        self._threshold = _NEVER if goal is Goal.NEWEST_HEADER else timestamp
        self.found: tuple[int, int] | None = None
        self.newest = -1  # the largest timestamp of the headers passed
        self.checked: list[tuple[int, int]] = []  # by the last `go`
        self.fault: tuple[int, str] | None = None

    @property
    def is_done(self) -> bool:
        """The end is reached, or what was looked for, or a fault."""
        return (
            self._position >= self._segment.size
            or self.fault is not None
            or (self.found is not None and self._goal is Goal.FIRST)
        )

    def go(self) -> None:
        """Walk on for a while."""
        self.checked = []
        if self._entry_offset is not None:
            self._believe_entry(self._entry_offset)
            self._entry_offset = None
        stop = self._position + _SLICE_BYTES
        while not self.is_done and self._position < stop:
            self._skip_hole()
            start, limit = self._position, self._limit()
            if start >= limit:
                continue
            if start < self._segment.trusted_from:
                end = self._check(start, min(limit, self._segment.trusted_from))
                if end is None:
                    return
                self.checked.append((start, end))
            else:
                end = min(limit, start + _PIECE_BYTES)
            self._search(start, end, limit)

    def _skip_hole(self) -> None:
        for start, end in self._segment.holes:
            if start <= self._position < end:
                self._position = end

    def _limit(self) -> int:
        """The end of the segment, or the next damage."""
        starts = [start for start, _ in self._segment.holes if start > self._position]
        return min(starts, default=self._segment.size)

    def _believe_entry(self, entry_offset: int) -> None:
        """An index entry from a file is believed when the batch it leads to ends as it says."""
        header = peek_header(pread_fully(self._segment.file.fd, HEADER_SIZE, self._position))
        if header is None or header.last_offset != entry_offset:
            self._fail(self._position, f"the index says that offset {entry_offset} is here")

    def _check(self, start: int, limit: int) -> int | None:
        """The end of the good batches from `start` on, at least one; None with `fault` set."""
        fd = self._segment.file.fd
        end = self._scan(start, min(limit, start + _STEP_BYTES))
        if end == start:  # it is larger than a step, or damaged
            header = peek_header(pread_fully(fd, HEADER_SIZE, start))
            if header is None or not HEADER_SIZE <= header.size <= limit - start:
                self._fail(start, "there is no whole batch")
                return None
            end = self._scan(start, start + header.size)
            if end != start + header.size:
                self._fail(start, "the batch is damaged")
                return None
        # The base offset is outside the checksum; what follows tells when it is wrong.
        successor = peek_header(pread_fully(fd, HEADER_SIZE, end)) if end < limit else None
        if successor is not None and successor.base_offset < self._next_offset:
            self._fail(end, f"offset {successor.base_offset} follows {self._next_offset}")
            return None
        return end

    def _scan(self, start: int, end: int) -> int:
        scan = scan_file(
            self._segment.file.fd,
            start,
            end,
            self._next_offset,
            offset_limit=self._segment.end_offset,
            stops_at_damage=True,
        )
        self._next_offset = scan.next_offset
        return scan.end

    def _search(self, start: int, end: int, limit: int) -> None:
        """Look at the batches that begin in [start, end); all of them end by `limit`."""
        data = pread_fully(self._segment.file.fd, end - start, start)
        at = 0
        while at + HEADER_SIZE <= len(data):
            at, is_found, newest = find_header(data, at, self._threshold, self._start_offset)
            self.newest = max(self.newest, newest)
            if at < 0:
                self._fail(start - 1 - at, "there is no batch")
                return
            if is_found and self._goal is not Goal.NEWEST_HEADER:
                size = HEADER.unpack_from(data, at)[1] + LENGTH_PREFIX_SIZE
                if size > limit - start - at:
                    break
                batch = memoryview(data)[at : at + size]
                if len(batch) < size:
                    batch = memoryview(pread_fully(self._segment.file.fd, size, start + at))
                self._look_into(batch)
                if self.is_done:
                    return
            elif is_found:
                size = HEADER.unpack_from(data, at)[1] + LENGTH_PREFIX_SIZE
            else:
                size = 0
            at += size
        if not 0 < at <= limit - start:
            self._fail(start, f"a batch ends behind byte {limit}")
            return
        self._position = start + at

    def _look_into(self, batch: memoryview) -> None:
        if self._goal is Goal.FIRST:
            self.found = first_record(batch, self._threshold, self._start_offset)
            return
        found = newest_record(batch, self._start_offset)
        if found is not None and found[0] >= self._threshold:
            self.found = found
            self._threshold = found[0] + 1

    def _fail(self, position: int, reason: str) -> None:
        self.fault = position, reason
