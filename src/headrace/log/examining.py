"""Walking a whole segment beside its owner: a thread fills a shadow, the owner takes it over.

The shadow is a segment of its own on the same open file, seen by nobody but the job. Its owner
adopts what the walk has found when the segment is still the one that was walked.
"""

from collections.abc import Container
from contextlib import suppress
from functools import partial

from headrace.log.scanner import scan_file
from headrace.log.segment import Segment
from headrace.log.segment_check import examine_all
from headrace.log.steps import Steps, job
from headrace.log.time_index import pack_entries
from headrace.records.batch import Buffer

# What an active segment has grown by meanwhile is walked on the owner's thread when it is so
# little: a millisecond, and the next round would find no less.
_LITTLE_BYTES = 256 * 1024


class SegmentChangedError(Exception):
    """The segment is no longer what the job has looked at: look again."""


class SegmentWatch:
    """Tells whether a segment is still the one it was: not dropped, cut or examined anew.

    Growing does not count. Whoever walks a segment or cuts it gives it a new list of damages.
    """

    __slots__ = ("_damages", "_segment", "_segments")

    def __init__(self, segments: Container[Segment] | None, segment: Segment) -> None:
        """Without `segments`, the log's own, a dropped segment goes unnoticed."""
        self._segments = segments
        self._segment = segment
        self._damages = segment.damages
        self.check()

    def check(self) -> None:
        """SegmentChangedError when it is another one."""
        segment = self._segment
        if segment.damages is not self._damages or (
            self._segments is not None and segment not in self._segments
        ):
            raise SegmentChangedError


def examine(segment: Segment, watch: SegmentWatch) -> Steps[None]:
    """Walk the whole segment: its damage is known then, and its indexes are new."""
    shadow = _shadow_of(segment)
    packed = yield from job(partial(_walk, shadow))
    watch.check()
    while segment.size - shadow.size > _LITTLE_BYTES:
        packed = yield from job(partial(_walk_on, shadow, segment.size, segment.end_offset))
        watch.check()
    if segment.size > shadow.size:
        packed = _walk_on(shadow, segment.size, segment.end_offset)
    _adopt(segment, shadow, packed)


def _shadow_of(segment: Segment) -> Segment:
    shadow = Segment(
        segment.directory,
        segment.base_offset,
        segment.size,
        segment.file.cache,
        segment.indexes,
        segment.index_interval_bytes,
        segment.created_ms,
    )
    shadow.file.file = segment.file.get()
    shadow.end_offset = segment.end_offset
    shadow.is_active = True  # whether it still is, is known when it is adopted
    shadow.damages = list(segment.damages)
    return shadow


def _walk(shadow: Segment) -> bytes:
    examine_all(shadow)
    return pack_entries(shadow.time_index.pending)


def _walk_on(shadow: Segment, size: int, end_offset: int) -> bytes:
    """Take in what was appended, in this process, behind the shadow's end."""

    def see(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
        shadow.take_in(fields[0] + fields[6], fields[8], position)

    file = shadow.file.get()
    scan = scan_file(file.fd, shadow.size, size, shadow.end_offset, see, offset_limit=end_offset)
    shadow.damages = shadow.damages + scan.damages
    shadow.size, shadow.end_offset = size, end_offset
    return pack_entries(shadow.time_index.pending)


def _adopt(segment: Segment, shadow: Segment, packed: bytes) -> None:
    was_loaded = segment.index.is_loaded
    segment.adopt(shadow)
    if not segment.is_active:
        entries = segment.time_index.count
        segment.time_index.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
        if segment.time_index.count > entries:
            packed += pack_entries(segment.time_index.pending[-1:])
        if not was_loaded:
            segment.indexes.admit(segment.index)
    # On a full disk the entries wait in memory for the next time.
    with suppress(OSError):
        segment.index.flush()
        segment.time_index.flush(packed)
