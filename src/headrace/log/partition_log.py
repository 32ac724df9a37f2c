"""One partition's log: append and read whole batches by offset.

Invariant: `log_end_offset` is the offset of the next message that is not yet in the
file; whatever lies below it can be read, whatever was staged and not committed cannot.
A commit that fails leaves log, files and producer state as they were before it.
"""

import errno
from bisect import bisect_right
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from headrace.config import LogConfig
from headrace.errors import OffsetOutOfRangeError, OutOfOrderSequenceError, StorageWriteError
from headrace.log import producer_lookup, retention, rolling, time_lookup, truncation
from headrace.log.access import BLOCKING, Access, NotReadyError
from headrace.log.files import FileCache, NamedFile, OpenFile
from headrace.log.index_cache import IndexCache
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.producer_state import ProducerBatch, ProducerStates
from headrace.log.segment import BatchFacts, Segment
from headrace.log.segment_check import checked_end, load_index, locate
from headrace.log.steps import run_here
from headrace.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    crc_is_valid,
    stamp,
    stamp_append_time,
)

_MAX_HINTS = 16
_OFFSET_BYTES = 8
_new_tuple = tuple.__new__
_BASE_OFFSET = attrgetter("base_offset")


class AppendResult(NamedTuple):
    """Where a batch went. A duplicate has the place of its original."""

    base_offset: int
    last_offset: int
    log_append_time: int  # -1 when the producer's timestamps were kept
    is_duplicate: bool


class FileSlice(NamedTuple):
    """Bytes of an open file; the file stays open while this is referenced."""

    file: OpenFile
    position: int
    length: int


class PartitionLog:
    """Single-threaded. Made by `LogDirectory` (through `log.loading`)."""

    __slots__ = (
        "_config", "_facts", "_hints", "_next_offset", "_staged", "_staged_bytes",
        "_staged_max_timestamp", "cleaner_offset", "directory", "doomed", "epochs", "files",
        "indexes", "leader_epoch", "log_end_offset", "log_start_offset", "partition",
        "producer_expiration_ms", "producers", "recovery_point", "segments", "snapshot_offset",
        "sync_failure", "topic", "topic_id", "unsynced_files",
    )  # fmt: skip

    def __init__(
        self,
        directory: Path,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        *,
        segments: list[Segment],
        producers: ProducerStates,
        epochs: LeaderEpochs,
        files: FileCache,
        indexes: IndexCache,
        log_start_offset: int,
        recovery_point: int,
        snapshot_offset: int,
        producer_expiration_ms: int,
        cleaner_offset: int,
    ) -> None:
        self.directory = directory
        self.topic, self.partition, self.topic_id = topic, partition, topic_id
        self._config = config
        self.segments = segments
        self.producers = producers
        self.epochs = epochs
        self.leader_epoch = epochs.latest
        self.files, self.indexes = files, indexes
        self.log_start_offset = log_start_offset
        self.log_end_offset = self._next_offset = segments[-1].end_offset
        self.recovery_point = min(recovery_point, self.log_end_offset)
        self.snapshot_offset = snapshot_offset  # of the latest snapshot file
        self.producer_expiration_ms = producer_expiration_ms
        self.cleaner_offset = cleaner_offset  # compaction has been through all below it
        self.doomed: list[tuple[int, Path]] = []  # (when to remove it, renamed file)
        # A sync up to this offset must cover the file or directory. Kept by log.rolling.
        self.unsynced_files: dict[Path, int] = {}
        # Of the fdatasync that failed: what was written before it may be lost, so that the
        # log takes no more until a restart has read it anew.
        self.sync_failure: StorageWriteError | None = None
        self._staged: list[memoryview] = []
        self._facts: list[BatchFacts] = []
        self._staged_bytes = 0
        self._staged_max_timestamp = NO_TIMESTAMP
        # Where sequential readers go on: offset -> (segment, position).
        self._hints: dict[int, tuple[Segment, int]] = {}

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes

    @property
    def size_bytes(self) -> int:
        return sum([segment.size for segment in self.segments])

    # -- appending -------------------------------------------------------------------------

    @property
    def has_staged(self) -> bool:
        return bool(self._staged)

    def stage(self, batch: memoryview, header: BatchHeader, now_ms: int) -> AppendResult:
        """Give a checked batch its place and keep the view until `commit` or `discard`.

        `header` is what `check_for_append` returned: its `max_timestamp` is that of the records.
        A duplicate stages nothing; its original may itself only be staged, so the answer
        must wait for the same commit.
        """
        (_, _, _, _, _, attributes, delta, _, max_timestamp,
         producer_id, epoch, sequence, _) = header  # fmt: skip
        if self._config.is_log_append_time:
            append_time = max_timestamp = now_ms
        else:
            append_time = NO_TIMESTAMP
        base_offset = self._next_offset
        producers = self.producers
        if producer_id >= 0:
            original = self._check_sequence(producer_id, epoch, sequence, delta)
            if original is not None:
                if append_time >= 0:
                    append_time = producer_lookup.timestamp_of(self, original)
                return AppendResult(original.base_offset, original.last_offset, append_time, True)
            producers.stage(
                producer_id, epoch, sequence, delta, base_offset, max_timestamp, attributes, now_ms
            )
        if append_time >= 0:
            stamp_append_time(batch, append_time)
        stamp(batch, base_offset, self.leader_epoch)
        last_offset = base_offset + delta
        self._next_offset = last_offset + 1
        size = len(batch)
        self._staged.append(batch)
        self._facts.append((size, last_offset, max_timestamp, len(producers.undo_log)))
        self._staged_bytes += size
        if max_timestamp > self._staged_max_timestamp:
            self._staged_max_timestamp = max_timestamp
        # Past AppendResult's own constructor: this runs once for every batch there is.
        return _new_tuple(AppendResult, (base_offset, last_offset, append_time, False))

    def _check_sequence(
        self, producer_id: int, epoch: int, sequence: int, delta: int
    ) -> ProducerBatch | None:
        try:
            return self.producers.check(producer_id, epoch, sequence, delta)
        except OutOfOrderSequenceError:
            # A snapshot holds one batch a producer; the log may remember the other four.
            if not producer_lookup.complete_entry(self, producer_id):
                raise
            return self.producers.check(producer_id, epoch, sequence, delta)

    def check_staged(self) -> None:
        """For debugging: every staged batch still is what was checked, else none is written."""
        for batch in self._staged:
            if not crc_is_valid(batch):
                self.discard()
                reason = "invariant broken: a batch changed between its check and its write"
                raise StorageWriteError(self.directory, OSError(errno.EFAULT, reason))

    def commit(self, now_ms: int) -> int:
        """Write all staged batches, all or none; the new log end offset.

        On StorageWriteError they are forgotten, and the log goes on as it was.
        """
        staged = self._staged
        if not staged:
            return self.log_end_offset
        segment = self.segments[-1]
        end_offset = self._next_offset
        try:
            if segment.has_room_for(
                self._config,
                len(staged),
                self._staged_bytes,
                end_offset - 1,
                self._staged_max_timestamp,
                now_ms,
            ):
                segment.append(staged, self._facts, self._staged_bytes)
            else:
                rolling.append_rolling(self, staged, self._facts, now_ms)
        except OSError as error:
            self.discard()
            raise StorageWriteError(segment.path, error) from error
        self.producers.undo_log.clear()
        self._forget_staged()
        self.log_end_offset = self._next_offset = end_offset
        return end_offset

    def discard(self) -> None:
        """Forget the staged batches."""
        self.producers.undo()
        self._forget_staged()
        self._next_offset = self.log_end_offset

    def _forget_staged(self) -> None:
        self._staged.clear()
        self._facts.clear()
        self._staged_bytes = 0
        self._staged_max_timestamp = NO_TIMESTAMP

    # -- reading ---------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        end_offset: int | None = None,
        access: Access = BLOCKING,
    ) -> list[FileSlice]:
        """Whole batches from the one that holds `offset` on; [] at the end.

        The first is whole even beyond `max_bytes`. What lies at or behind `end_offset`
        is not returned. One segment at a time, as Kafka does. With RESIDENT access only what
        can be had without waiting, or NotReadyError.
        """
        log_end = self.log_end_offset
        if not self.log_start_offset <= offset <= log_end:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, log_end)
        if offset == log_end or (end_offset is not None and offset >= end_offset):
            return []
        hint = self._hints.get(offset)
        if hint is None or hint[1] >= hint[0].size:
            hint = self.find(offset, access)
            if hint is None:
                return []
        segment, position = hint
        size = segment.size
        end = position + max_bytes
        if segment.damages:
            locate(segment, offset, access)  # raises where the damage is
        if segment.trusted_from or segment.damages or not segment.index.is_loaded:
            load_index(segment, access)
            end = checked_end(segment, position, end, access)
        elif end >= size:
            end = size
        else:
            end = segment.boundary_near(position, end, access)
        if end_offset is not None and end_offset < segment.end_offset:
            end = min(end, locate(segment, end_offset, access))
            if end <= position:
                return []
        file = segment.file.get()
        self._remember(segment, end, file, access)
        return [FileSlice(file, position, end - position)]

    def find(self, offset: int, access: Access = BLOCKING) -> tuple[Segment, int] | None:
        """(segment, position) of the first batch that ends at or behind `offset`."""
        segments = self.segments
        first = max(0, bisect_right(segments, offset, key=_BASE_OFFSET) - 1)
        for segment in segments[first:]:
            if segment.size or segment.damages:
                position = locate(segment, offset, access)
                if position < segment.size:
                    return segment, position
        return None

    def _remember(self, segment: Segment, position: int, file: OpenFile, access: Access) -> None:
        if position >= segment.size:
            next_offset = segment.end_offset
        else:
            try:
                next_offset = int.from_bytes(access.pread(file, _OFFSET_BYTES, position), "big")
            except NotReadyError:
                return  # only a hint, and what was found can be sent
        hints = self._hints
        if len(hints) >= _MAX_HINTS and next_offset not in hints:
            del hints[next(iter(hints))]
        hints[next_offset] = (segment, position)

    def forget_hints(self) -> None:
        """Segments were cut or dropped: positions remembered may be wrong."""
        self._hints.clear()

    def offset_for_time(self, timestamp_ms: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record at or after `timestamp_ms`."""
        return run_here(time_lookup.first_at_or_after(self, timestamp_ms))

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record with the largest timestamp."""
        return run_here(time_lookup.first_of_max_timestamp(self))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch up to `epoch`; (-1, -1) if unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    # -- ageing ----------------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Hide all below `offset` (-1: everything); the new log start offset."""
        return retention.delete_records(self, offset)

    def enforce_retention(
        self, now_ms: int, remove: retention.RemoveFiles = retention.remove_files
    ) -> int:
        """Delete segments that are too old, too many or hidden; how many.

        Files whose time has come are given to `remove`: unlinking large ones takes long.
        """
        return retention.enforce(self, now_ms, remove)

    def truncate(self, offset: int) -> None:
        """Cut the log so that nothing at or behind `offset` is left."""
        self.discard()
        truncation.truncate(self, offset)
        self._next_offset = self.log_end_offset

    # -- durability ------------------------------------------------------------------------

    def unsynced(self) -> tuple[list[OpenFile | NamedFile], int]:
        """The files whose sync makes all below the returned offset survive a power cut.

        Directories are among them when files in them are new. Safe to sync in a thread.
        """
        return rolling.unsynced(self), self.log_end_offset

    @property
    def needs_sync(self) -> bool:
        return self.log_end_offset > self.recovery_point or bool(self.unsynced_files)

    @property
    def has_unsynced_segments(self) -> bool:
        """Whether a closed segment waits for its sync; Kafka begins one at every roll."""
        return self.recovery_point < self.segments[-1].base_offset

    def mark_synced(self, offset: int) -> None:
        """What `unsynced` returned with this offset is on disk."""
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))
        if self.unsynced_files:
            rolling.forget_synced(self, offset)

    def flush_indexes(self) -> None:
        """Write index entries that wait in memory (part of a checkpoint)."""
        self.segments[-1].try_flush_indexes()

    def close(self, *, is_synced: bool = True) -> None:
        """Leave the files as a clean stop of Kafka's would, and on disk if `is_synced`."""
        self.discard()
        rolling.close(self, is_synced=is_synced)
