"""After an unclean stop: walk what may be torn, keep all that is good, say what is not.

Invariant: nothing below the recovery point is ever cut, for it was on disk once and its
offsets were given away; if it cannot be read it is damage, and the log ends behind it.
Above the recovery point only a tail with nothing valid behind it is cut.
"""

from pathlib import Path

from headrace.log.files import pread_fully, sync_directory, sync_file, write_all
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.producer_rebuild import load_producers, replaying
from headrace.log.producer_snapshot import ProducerSnapshots
from headrace.log.producer_state import ProducerStates
from headrace.log.scanner import Damage
from headrace.log.segment import Segment
from headrace.log.segment_check import close_last_damage, examine_all
from headrace.records.batch import Buffer

_NO_LIMIT = 2**63 - 1
_REWRITTEN_AT_ONCE_BYTES = 1024 * 1024


def first_to_recover(segments: list[Segment], recovery_point: int) -> int:
    """Index of the first segment that may hold data beyond the recovery point."""
    for index, segment in enumerate(segments[:-1]):
        if segment.end_offset > recovery_point:
            return index
    return len(segments) - 1


def recover(
    directory: Path,
    segments: list[Segment],
    snapshots: ProducerSnapshots,
    recovery_point: int,
    epochs: LeaderEpochs,
    *,
    is_compacted: bool,
    now_ms: int,
    syncs: bool,
    rewrites: bool = False,
    repairs: list[str],
) -> ProducerStates:
    """Restore the invariant; `segments` may lose a last one that never held anything."""
    first = first_to_recover(segments, recovery_point)
    start = segments[first].base_offset
    producers = load_producers(snapshots, segments[:first] or segments[:1], start, now_ms, repairs)
    replay = replaying(producers, _NO_LIMIT, now_ms)
    good_ends: dict[int, int] = {}

    def visit(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
        if fields[2] > epochs.latest or not epochs.entries:
            epochs.assign(fields[2], fields[0])
        replay(fields, position, buffer, at)

    if rewrites:
        for segment in segments[first:]:
            _rewrite(segment)
    for segment in segments[first:]:
        if segment.base_offset > start:
            snapshots.write(segment.base_offset, producers.entries)
        is_last = segment is segments[-1]
        scan = examine_all(segment, visit, end_is_known=not is_last)
        good_ends[segment.base_offset] = scan.next_offset
        if not is_last and not is_compacted:
            _note_missing(segment, scan.next_offset, segment.end_offset)
    settle_tail(segments, good_ends, recovery_point, repairs)
    for segment in segments[first:]:
        repairs += describe_damages(segment)
        segment.flush_indexes()
        if syncs:
            _sync(segment)
    if syncs:
        sync_directory(directory)
    return producers


def _rewrite(segment: Segment) -> None:
    """Write every byte again: after a failed sync the kernel thinks that the disk has them."""
    fd = segment.file.get().fd
    for position in range(0, segment.size, _REWRITTEN_AT_ONCE_BYTES):
        size = min(_REWRITTEN_AT_ONCE_BYTES, segment.size - position)
        write_all(fd, pread_fully(fd, size, position), position)


def settle_tail(
    segments: list[Segment], good_ends: dict[int, int], recovery_point: int, repairs: list[str]
) -> None:
    """Decide where the log ends. `good_ends`: the offset behind each segment's last good batch."""
    while True:
        last = segments[-1]
        good_end = good_ends[last.base_offset]
        damage = last.damages[-1] if last.damages else None
        if damage is not None and damage.end == last.size and good_end >= recovery_point:
            _cut(last, damage, repairs)
        if not _is_needless(segments, good_ends, recovery_point):
            break
        repairs.append(f"{last.path}: removed, it was empty and its predecessor is torn")
        last.remove_files()
        segments.pop()
    last.is_active = True
    last.end_offset = max(good_end, recovery_point, last.base_offset)
    close_last_damage(last, last.end_offset)
    if not last.damages or last.damages[-1].offset_end < last.end_offset:
        _note_missing(last, good_end, last.end_offset)


def _is_needless(segments: list[Segment], good_ends: dict[int, int], recovery_point: int) -> bool:
    """A segment begun just before a power cut, behind one whose end did not reach the disk."""
    if len(segments) < 2:
        return False
    last, before = segments[-1], segments[-2]
    return (
        last.size == 0
        and last.base_offset > recovery_point
        and good_ends.get(before.base_offset, last.base_offset) < last.base_offset
        and bool(before.damages)
    )


def _cut(segment: Segment, damage: Damage, repairs: list[str]) -> None:
    cut = segment.size - damage.start
    segment.cut(damage.start)
    segment.damages = [d for d in segment.damages if d.start < damage.start]
    if cut:
        repairs.append(
            f"{segment.path}: cut {cut} bytes at byte {damage.start}, an unfinished write"
            f" ({damage.reason})"
        )


def _note_missing(segment: Segment, start: int, end: int) -> None:
    """Offsets [start, end) should be at the end of the file and are not."""
    if start < end and not (segment.damages and segment.damages[-1].end == segment.size):
        reason = f"the file ends before offset {end}"
        segment.damages.append(Damage(segment.size, segment.size, start, end, reason))


def describe_damages(segment: Segment) -> list[str]:
    return [
        f"{segment.path}: damaged at byte {damage.start}: {damage.reason}; offsets"
        f" [{damage.offset_start}, {damage.offset_end}) cannot be read, the rest is kept"
        for damage in segment.damages
    ]


def _sync(segment: Segment) -> None:
    for path in (segment.path, segment.index.path, segment.time_index.path):
        sync_file(path)
