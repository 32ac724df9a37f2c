"""From a time to an offset: the time index leads near, then batches decide.

A lookup is a sequence of `Steps`: indexes are asked on the log's own thread, files are read,
checked and decompressed by jobs that may run in another.
"""

from bisect import bisect_right
from functools import partial

from headrace.log.errors import CorruptBatchError
from headrace.log.examining import SegmentChangedError, SegmentWatch, examine
from headrace.log.offset_index import OffsetIndex
from headrace.log.partition_log import PartitionLog
from headrace.log.segment import Segment
from headrace.log.segments import Segments
from headrace.log.steps import Steps, job
from headrace.log.time_walk import Goal, Walk, WalkedSegment

Found = tuple[int, int]  # timestamp, offset


def first_at_or_after(log: PartitionLog, timestamp_ms: int) -> Steps[Found | None]:
    """(timestamp, offset) of the first record at or after `timestamp_ms`."""
    while True:
        try:
            for segment in _visible_segments(log):
                newest = yield from sure_max_timestamp(log.segments, segment)
                if newest < timestamp_ms:
                    continue
                found = yield from _first_in(log, segment, timestamp_ms)
                if found is not None:
                    return found
        except SegmentChangedError:
            continue
        return None


def first_of_max_timestamp(log: PartitionLog) -> Steps[Found | None]:
    """(timestamp, offset) of the first record with the largest timestamp in the log."""
    while True:
        try:
            return (yield from _first_of_max_timestamp(log))
        except SegmentChangedError:
            continue


def sure_max_timestamp(segments: Segments | None, segment: Segment) -> Steps[int]:
    """The largest timestamp in the segment, by the batches and not only by the time index.

    A time index that lost its end would make the segment look older than it is, and
    retention would delete what must stay. Looked at once; the index leads near the end.
    `segments`, when given, are the log's own: SegmentChangedError when it is no longer theirs.
    """
    if not segment.is_max_sure:
        expected = segment.max_timestamp
        begin = segment.max_timestamp_offset
        walk = yield from _walk(segments, segment, Goal.NEWEST_HEADER, begin)
        if walk.newest == expected:
            segment.is_max_sure = True
        elif not segment.is_max_sure:
            yield from examine(segment, SegmentWatch(segments, segment))
    return segment.max_timestamp


def _visible_segments(log: PartitionLog) -> list[Segment]:
    start = log.log_start_offset
    return [segment for segment in log.segments if segment.size and segment.end_offset > start]


def _first_of_max_timestamp(log: PartitionLog) -> Steps[Found | None]:
    segments = _visible_segments(log)
    for segment in segments:
        yield from sure_max_timestamp(log.segments, segment)
    best: Found | None = None
    for segment in sorted(segments, key=lambda s: (-s.max_timestamp, s.base_offset)):
        newest = segment.max_timestamp
        if newest < 0 or (best and newest <= best[0]):
            break
        found = yield from _first_in(log, segment, newest)
        if found is None:
            # Its maximum lies below the log start offset: look at what is left of it.
            start = log.log_start_offset
            walk = yield from _walk(log.segments, segment, Goal.NEWEST, start, start_offset=start)
            found = walk.found
        if found and (best is None or found[0] > best[0]):
            best = found
    return best


def _first_in(log: PartitionLog, segment: Segment, timestamp_ms: int) -> Steps[Found | None]:
    offset = yield from _look_up_time(log.segments, segment, timestamp_ms)
    start_offset = log.log_start_offset
    walk = yield from _walk(
        log.segments,
        segment,
        Goal.FIRST,
        max(offset, start_offset),
        timestamp=timestamp_ms,
        start_offset=start_offset,
    )
    return walk.found


def _look_up_time(segments: Segments, segment: Segment, timestamp_ms: int) -> Steps[int]:
    """An offset such that every batch of the segment before it is older."""
    index = segment.time_index
    relative = index.lookup_pending(timestamp_ms)
    if relative is None:
        watch = SegmentWatch(segments, segment)
        relative, fault = yield from job(partial(index.in_file().search, timestamp_ms))
        watch.check()
        if fault is not None:
            yield from examine(segment, watch)
            raise SegmentChangedError
        index.is_checked = True
    return segment.base_offset + relative


def _walk(
    segments: Segments | None,
    segment: Segment,
    goal: Goal,
    offset: int,
    *,
    timestamp: int = 0,
    start_offset: int = 0,
) -> Steps[Walk]:
    """Walk from the batch that holds `offset`, or one before it, as far as the goal takes."""
    yield from _load_index(segments, segment)
    watch = SegmentWatch(segments, segment)
    index = segment.index
    found = bisect_right(index.offsets, offset - index.base_offset)
    position = index.positions[found - 1] if found else 0
    is_trusted = segment.trusted_from == 0
    walk = Walk(
        WalkedSegment(
            segment.file.get(),
            segment.base_offset,
            segment.end_offset,
            segment.size,
            segment.trusted_from,
            tuple((damage.start, damage.end) for damage in segment.damages),
        ),
        goal,
        position,
        timestamp=timestamp,
        start_offset=start_offset,
        entry_offset=None
        if is_trusted or not found
        else index.offsets[found - 1] + index.base_offset,
    )
    while not walk.is_done:
        yield from job(walk.go)
        watch.check()
        for start, end in walk.checked:
            segment.note_checked(start, end)
    if walk.fault is not None:
        if is_trusted:
            raise CorruptBatchError(segment.path, *walk.fault)
        yield from examine(segment, watch)
        raise SegmentChangedError
    return walk


def _load_index(segments: Segments | None, segment: Segment) -> Steps[None]:
    index = segment.index
    if index.is_loaded:
        return
    watch = SegmentWatch(segments, segment)
    loaded = OffsetIndex(index.path, index.base_offset)
    fault = yield from job(partial(loaded.load, segment.size))
    watch.check()
    if index.is_loaded:
        return
    if fault is not None:
        yield from examine(segment, watch)
        raise SegmentChangedError
    segment.take_over_index(loaded)
