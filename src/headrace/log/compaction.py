"""Compaction of one log: of each key only the last record stays, and no offset changes.

Only closed segments are rewritten. `plan`, `announce` and `swap` belong to the thread that owns
the log; `copy` and `sync` may run in another, for they read files that nobody changes and write
files that nobody knows. Crash order: what was copied is on disk before any name changes, and all
`.swap` names are before the first old file goes; so a start finds the old segments or can make
the new ones of the `.swap` files (see `leftovers`).
"""

import threading
import time
from pathlib import Path

from headrace.log.batch_filter import BatchFilter, empty_shell
from headrace.log.cleaned_segment import CleanedSegment
from headrace.log.errors import StorageWriteError
from headrace.log.files import sync_directory
from headrace.log.key_map import ClosedSegment, KeyMap, LiveOffsets, scan_source
from headrace.log.names import TXN_INDEX_SUFFIX, segment_file
from headrace.log.offset_index import ENTRY_SIZE as INDEX_ENTRY_SIZE
from headrace.log.partition_log import PartitionLog
from headrace.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.records.batch import (
    CONTROL_BIT,
    LENGTH_PREFIX_SIZE,
    TRANSACTIONAL_BIT,
    Buffer,
)

# Memory for the keys of one pass, as Kafka's default log.cleaner.dedupe.buffer.size. A log with
# more keys is cleaned in parts.
MAX_MAP_BYTES = 128 * 1024 * 1024
# An active segment is rolled to be compacted once it is this large. Kafka waits until it is full
# (100 MiB of commits); here a group's positions must be loaded within a fraction of a second.
ROLL_BYTES = 4 * 1024 * 1024
# The copying thread lets others run after this many batches, a fraction of a millisecond:
# an event loop would otherwise wait five for Python's interpreter lock, each time.
_BATCHES_PER_TURN = 64


class CleaningStoppedError(Exception):
    """`stop` was called while a cleaning copied."""


def is_worth_it(log: PartitionLog, roll_bytes: int | None = None) -> bool:
    """Whether enough of the log is dirty: the ratio of `min.cleanable.dirty.ratio` in bytes.

    The active segment counts when it has `roll_bytes` and would be rolled.
    """
    closed = _cleanable(log)
    dirty = sum([s.size for s in closed if s.end_offset > log.cleaner_offset])
    total = sum([s.size for s in closed])
    active = log.segments.active
    if _rolls(log, roll_bytes):
        dirty += active.size
        total += active.size
    return dirty > 0 and dirty >= log.config.min_cleanable_dirty_ratio * total


def plan(log: PartitionLog, now_ms: int, roll_bytes: int | None = None) -> "Cleaning | None":
    """Begin a compaction; None when there is nothing that could be compacted now."""
    if _rolls(log, roll_bytes):
        log.roll(now_ms)
    segments = _cleanable(log)
    if not segments or segments[-1].end_offset <= log.cleaner_offset:
        return None
    if any(segment.damages for segment in segments):
        return None  # what is damaged must stay where it is, and may hold any key
    return Cleaning(log, segments, now_ms)


def _rolls(log: PartitionLog, roll_bytes: int | None) -> bool:
    # With an open transaction the rolled segment could not be cleaned, and would roll again.
    return (
        roll_bytes is not None
        and log.segments.active.size >= roll_bytes
        and not log.has_staged
        and _first_unstable_offset(log) is None
    )


def _cleanable(log: PartitionLog) -> list[Segment]:
    """The closed segments below the first open transaction."""
    unstable = _first_unstable_offset(log)
    segments = log.segments[:-1]
    if unstable is not None:
        segments = [segment for segment in segments if segment.end_offset <= unstable]
    return segments


def _first_unstable_offset(log: PartitionLog) -> int | None:
    entries = log.producers.entries.values()
    return min([e.txn_first_offset for e in entries if e.txn_first_offset >= 0], default=None)


class Cleaning:
    """One pass over a log, made by `plan`: `copy`, `announce`, `sync`, `swap`, in this order."""

    def __init__(self, log: PartitionLog, segments: list[Segment], now_ms: int) -> None:
        self._log = log
        self._directory: Path = log.directory
        self._config = log.config
        self._now_ms = now_ms
        self._segments = segments
        self._groups = [
            [ClosedSegment(s.file.get(), s.base_offset, s.end_offset, s.size) for s in group]
            for group in _group(segments, log)
        ]
        start = min(max(log.cleaner_offset, segments[0].base_offset), segments[-1].end_offset)
        self._map = KeyMap(start)
        self._last_offsets = {
            producer_id: entry.batches[-1].last_offset
            for producer_id, entry in log.producers.entries.items()
            if entry.batches
        }
        self._filter = BatchFilter(self._map.get, now_ms, 0)
        self._live = LiveOffsets((), _let_others_run)
        self._cleaned: list[CleanedSegment] = []
        self._batches = 0
        self._stopped = threading.Event()
        self.bytes_before = sum([segment.size for segment in segments])
        self.max_map_bytes = MAX_MAP_BYTES

    @property
    def bytes_after(self) -> int:
        return sum([cleaned.size for cleaned in self._cleaned])

    def stop(self) -> None:
        """Make `copy` end early, from any thread."""
        self._stopped.set()

    def copy(self) -> None:
        """Write the `.cleaned` files. On any error there are none, and the log is as it was."""
        try:
            sources = [source for group in self._groups for source in group]
            self._map.fill(sources, self.max_map_bytes, self._take_turns)
            # When the map was full: what lies behind it has its turn in the next pass.
            self._groups = [g for g in self._groups if g[0].base_offset < self._map.end]
            self._live = LiveOffsets(self._map.offsets(), _let_others_run)
            self._filter = BatchFilter(
                self._map.get, self._now_ms, self._config.delete_retention_ms
            )
            for group in self._groups:
                self._copy_group(group)
            sync_directory(self._directory)
        except BaseException:
            self.abandon()
            raise
        finally:
            self._map.clear(_let_others_run)
            self._live.clear(_let_others_run)

    def announce(self) -> bool:
        """Name the copies as what shall be; False when the segments changed meanwhile."""
        if not self._is_current():
            return False
        try:
            for cleaned in reversed(self._cleaned):
                cleaned.announce()
        except OSError as error:
            self.abandon()
            raise StorageWriteError(self._directory, error) from error
        return True

    def sync(self) -> None:
        """Make the announcement survive a power cut."""
        try:
            sync_directory(self._directory)
        except OSError:
            self.abandon()
            raise

    def swap(self) -> bool:
        """Put the copies in the place of the segments; False when those changed meanwhile."""
        if not self._is_current():
            return False
        ends = [group[-1].end_offset for group in self._groups]
        count = len(self._replaced())
        self._log.swap_compacted(count, self._cleaned, ends, self._map.end, self._now_ms)
        return True

    def _replaced(self) -> list[Segment]:
        return self._segments[: sum([len(group) for group in self._groups])]

    def _is_current(self) -> bool:
        """Whether the log still begins with the segments that were copied; else all is undone."""
        replaced = self._replaced()
        if self._log.segments[: len(replaced)] == replaced:
            return True
        self.abandon()
        return False

    def abandon(self) -> None:
        """Remove the copies."""
        for cleaned in self._cleaned:
            cleaned.remove()
        self._cleaned = []

    def _copy_group(self, group: list[ClosedSegment]) -> None:
        cleaned = CleanedSegment(
            self._directory, group[0].base_offset, self._config.index_interval_bytes
        )
        self._cleaned.append(cleaned)
        dropped_last: tuple[int, ...] | None = None

        def visit(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
            nonlocal dropped_last
            self._take_turns()
            dropped_last = None
            batch = self._filtered(fields, buffer, at)
            if batch is not None:
                cleaned.append(batch)
            elif self._last_offsets.get(fields[9]) == fields[0] + fields[6]:
                cleaned.append(empty_shell(fields))  # it keeps a producer's last sequence
            else:
                dropped_last = fields

        try:
            for source in group:
                scan_source(source, visit)
            if dropped_last is not None:
                # It shows how far the group reaches: a start that finds this as a `.swap` must
                # know what it replaces, and a reader must get past it.
                cleaned.append(empty_shell(dropped_last))
            cleaned.finish(b"".join([_aborted_transactions(self._directory, s) for s in group]))
        finally:
            cleaned.close()

    def _filtered(self, fields: tuple[int, ...], buffer: Buffer, at: int) -> Buffer | None:
        base_offset = fields[0]
        if base_offset >= self._map.end:
            return memoryview(buffer)[at : at + fields[1] + LENGTH_PREFIX_SIZE]
        if (
            base_offset >= self._map.start
            and not fields[5] & (CONTROL_BIT | TRANSACTIONAL_BIT)
            and not self._live.has_any(base_offset, base_offset + fields[6])
        ):
            return None  # as most batches of the dirty part: no need to look into them
        return self._filter.apply(fields, buffer, at)

    def _take_turns(self) -> None:
        self._batches += 1
        if self._batches % _BATCHES_PER_TURN == 0:
            if self._stopped.is_set():
                raise CleaningStoppedError
            _let_others_run()


def _let_others_run() -> None:
    """Give Python's interpreter lock away for a moment."""
    time.sleep(0)


def _aborted_transactions(directory: Path, source: ClosedSegment) -> bytes:
    try:
        return segment_file(directory, source.base_offset, TXN_INDEX_SUFFIX).read_bytes()
    except FileNotFoundError:
        return b""


def _group(segments: list[Segment], log: PartitionLog) -> list[list[Segment]]:
    """Neighbours that fit into one segment together, as Kafka's cleaner joins them."""
    config = log.config
    groups: list[list[Segment]] = []
    size = entries = 0
    for segment in segments:
        segment_entries = _index_entries(segment)
        size += segment.size
        entries += segment_entries
        if (
            groups
            and size <= config.segment_bytes
            and entries * INDEX_ENTRY_SIZE <= config.segment_index_bytes
            and segment.end_offset - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size, entries = segment.size, segment_entries
    return groups


def _index_entries(segment: Segment) -> int:
    try:
        return segment.index.path.stat().st_size // INDEX_ENTRY_SIZE
    except FileNotFoundError:
        return 0
