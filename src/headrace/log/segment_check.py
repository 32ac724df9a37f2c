"""Checking what another process wrote before it is served: each byte once.

A range is checked when it is first read. The first fault makes the whole segment be
walked, once: then its damage is known to the byte, and its index is built anew, for an
index that led to a wrong place looks the same as damage until then.

With RESIDENT access nothing is checked or loaded here: NotReadyError names what
`log.verifying` must do first, and what was checked before is all that is served.
"""

import os
from bisect import bisect_right
from typing import NamedTuple

from headrace.log.access import BLOCKING, CHECK, EXAMINE, INDEX, Access, Need, NotReadyError
from headrace.log.errors import CorruptBatchError
from headrace.log.files import OpenFile
from headrace.log.scanner import Damage, Scan, Visit, scan_file
from headrace.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.records.batch import HEADER_SIZE, Buffer, peek_header

_STEP_BYTES = 64 * 1024


class FaultFoundError(Exception):
    """Something does not fit; walk the whole segment."""


def load_index(segment: Segment, access: Access = BLOCKING) -> None:
    """Make `segment.index` usable: from its file, or from the log when the file is bad."""
    index = segment.index
    if index.is_loaded:
        return
    if not access.waits:
        raise NotReadyError(Need(INDEX, segment))
    if index.load(segment.size) is not None:
        examine_all(segment)
        segment.try_flush_indexes()
    if not segment.is_active:
        segment.indexes.admit(index)


def locate(segment: Segment, offset: int, access: Access = BLOCKING) -> int:
    """Position of the first batch that ends at or behind `offset`; `size` if none does.

    Raises CorruptBatchError when damage lies where the offset should be.
    """
    load_index(segment, access)
    if segment.trusted_from > 0:
        try:
            return _locate_unchecked(segment, offset, access)
        except FaultFoundError:
            _examine(segment, access)
    if segment.damages:
        return _locate_around_damage(segment, max(offset, segment.base_offset), access)
    return segment.walk_to(offset, segment.index.lookup(offset), segment.size, access)


def _examine(segment: Segment, access: Access) -> None:
    if not access.waits:
        raise NotReadyError(Need(EXAMINE, segment))
    examine_all(segment)


def _locate_unchecked(segment: Segment, offset: int, access: Access) -> int:
    position = segment.index.lookup(offset)
    _believe_entry(segment, position, access)
    while position < segment.size:
        end = _check(segment, position, min(position + _STEP_BYTES, segment.size), access)
        found = segment.walk_to(offset, position, end, access)
        if found < end:
            return found
        position = end
    return segment.size


def _locate_around_damage(segment: Segment, offset: int, access: Access) -> int:
    for damage in segment.damages:
        if damage.offset_start <= offset < damage.offset_end:
            raise CorruptBatchError(segment.path, damage.start, damage.reason)
    position = segment.index.lookup(offset)
    for damage in segment.damages:
        if damage.start < position:
            continue
        found = segment.walk_to(offset, position, damage.start, access)
        if found < damage.start:
            return found
        position = damage.end
    return segment.walk_to(offset, position, segment.size, access)


def checked_end(segment: Segment, position: int, limit: int, access: Access = BLOCKING) -> int:
    """The end of what may be served from `position` on, up to about `limit`.

    At least one whole batch; raises CorruptBatchError when that one is damaged.
    """
    limit = min(limit, segment.size)
    if segment.trusted_from > 0:
        try:
            return _check(segment, position, limit, access)
        except FaultFoundError:
            _examine(segment, access)
    for damage in segment.damages:
        if damage.start == position and damage.end > position:
            raise CorruptBatchError(segment.path, position, damage.reason)
        if damage.start > position:
            limit = min(limit, damage.start)
            if limit == damage.start:
                return limit
            break
    if limit == segment.size:
        return limit
    return segment.boundary_near(position, limit, access)


def _check(segment: Segment, position: int, limit: int, access: Access) -> int:
    """The end of the whole good batches in [position, limit), at least one.

    A fault behind the first batch only ends the range: whoever asks for it meets it.
    """
    end = position
    while end < limit or end == position:
        known = segment.size if end >= segment.trusted_from else segment.examined.end_of(end)
        if known >= limit and known > end:
            cut = _cut_known(segment, end, limit, access)
            return cut if cut <= limit or end == position else end
        if known > end:
            end = known
            continue
        if not access.waits:
            if end > position:
                break
            raise NotReadyError(Need(CHECK, segment, end))
        behind = segment.examined.start_behind(end)
        stop = min(limit, segment.trusted_from, segment.size if behind is None else behind)
        stretch = SegmentSnapshot.of(segment)
        checked = stretch.scan(end, stop)
        if checked == end:
            if end > position:
                break
            checked = stretch.scan_one(end)
        segment.note_checked(end, checked)
        end = checked
        if checked < stop:
            break
    return end


def _cut_known(segment: Segment, position: int, limit: int, access: Access) -> int:
    if limit == segment.size:
        return limit
    boundary = segment.index.boundary_before(limit)
    if boundary > position:
        _believe_entry(segment, boundary, access)
        return boundary
    return segment.boundary_near(position, limit, access)


class SegmentSnapshot(NamedTuple):
    """What checking bytes of a segment needs to know of it: a thread may have it."""

    file: OpenFile
    base_offset: int
    end_offset: int
    size: int
    trusted_from: int

    @classmethod
    def of(cls, segment: Segment) -> "SegmentSnapshot":
        """As the segment is now."""
        return cls(
            segment.file.get(),
            segment.base_offset,
            segment.end_offset,
            segment.size,
            segment.trusted_from,
        )

    def scan(self, start: int, end: int) -> int:
        """The end of the whole good batches from `start` on that lie before `end`."""
        return scan_file(
            self.file.fd,
            start,
            end,
            self.base_offset,
            offset_limit=self.end_offset,
            stops_at_damage=True,
        ).end

    def scan_one(self, position: int) -> int:
        """Check the batch at `position`, however large; its end."""
        fd = self.file.fd
        header = peek_header(os.pread(fd, HEADER_SIZE, position))
        if header is None or not HEADER_SIZE <= header.size <= self.size - position:
            raise FaultFoundError
        end = position + header.size
        if self.scan(position, end) != end:
            raise FaultFoundError
        # The base offset is outside the checksum; what follows tells when it is wrong.
        successor = peek_header(os.pread(fd, HEADER_SIZE, end))
        if (
            end < self.size
            and successor is not None
            and successor.base_offset <= header.last_offset
        ):
            raise FaultFoundError
        return end


def _believe_entry(segment: Segment, position: int, access: Access) -> None:
    """An index entry from a file is believed when the batch it leads to ends as it says."""
    if position == 0:
        return
    index = segment.index
    last_offset = index.offsets[bisect_right(index.positions, position) - 1] + index.base_offset
    header = peek_header(access.pread(segment.file.get(), HEADER_SIZE, position))
    if header is None or header.last_offset != last_offset:
        raise FaultFoundError


def examine_all(segment: Segment, visit: Visit | None = None, *, end_is_known: bool = True) -> Scan:
    """Walk the whole segment: its damage is known then, and its indexes are new.

    `visit` also sees every good batch. With `end_is_known` offsets must lie below
    `segment.end_offset`, and a damaged tail stands for all offsets up to it.
    """
    segment.clear_indexes()
    take_in = segment.take_in

    def see(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
        take_in(fields[0] + fields[6], fields[8], position)
        if visit is not None:
            visit(fields, position, buffer, at)

    limit = segment.base_offset + MAX_RELATIVE_OFFSET + 1
    if end_is_known:
        limit = segment.end_offset
    fd = segment.file.get().fd
    scan = scan_file(fd, 0, segment.size, segment.base_offset, see, offset_limit=limit)
    missing = [damage for damage in segment.damages if damage.start == damage.end]
    segment.settle(scan.damages + missing)
    if end_is_known:
        close_last_damage(segment, segment.end_offset)
    if not segment.is_active:
        segment.time_index.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
    return scan


def close_last_damage(segment: Segment, end_offset: int) -> None:
    """A damage up to the end of the file stands for all offsets up to `end_offset`."""
    if segment.damages and segment.damages[-1].offset_end < end_offset:
        last = segment.damages[-1]
        if last.end == segment.size:
            segment.damages[-1] = Damage(
                last.start, last.end, last.offset_start, end_offset, last.reason
            )
