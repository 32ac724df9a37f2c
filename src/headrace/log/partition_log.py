"""One partition's log: append and read whole batches by offset.

Invariant: `log_end_offset` is the offset of the next message that is not yet in the
file; whatever lies below it can be read, whatever was staged and not committed cannot.
A commit that fails leaves log, files and producer state as they were before it.
What lies below `recovery_point` survives a power cut.

The log keeps its parts in step, and each part its own invariants: `Segments` (the files, in
order), `ProducerStates` and their `ProducerSnapshots`, `LeaderEpochs`, `UnsyncedFiles`. Above it
are the questions and chores that take a whole log: `time_lookup`, `retention`, `compaction`.
"""

import errno
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from headrace.config import LogConfig
from headrace.log import producer_lookup
from headrace.log.access import BLOCKING, Access, NotReadyError
from headrace.log.cleaned_segment import CleanedSegment
from headrace.log.errors import OffsetOutOfRangeError, OutOfOrderSequenceError, StorageWriteError
from headrace.log.files import NamedFile, OpenFile
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.producer_rebuild import load_producers
from headrace.log.producer_snapshot import ProducerSnapshots
from headrace.log.producer_state import ProducerBatch, ProducerEntry, ProducerStates
from headrace.log.segment import BatchFacts, Segment
from headrace.log.segment_check import checked_end, load_index, locate
from headrace.log.segments import Segments
from headrace.log.unsynced_files import UnsyncedFiles
from headrace.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    crc_is_valid,
    stamp,
    stamp_append_time,
)

_MAX_HINTS = 16
_OFFSET_BYTES = 8
_TO_THE_END = -1
_new_tuple = tuple.__new__


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
        "_config", "_epochs", "_facts", "_hints", "_next_offset", "_staged", "_staged_bytes",
        "_staged_max_timestamp", "_unsynced_files", "cleaner_offset", "directory",
        "leader_epoch", "log_end_offset", "log_start_offset", "partition",
        "producer_expiration_ms", "producers", "recovery_point", "segments", "snapshots",
        "sync_failure", "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        directory: Path,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        *,
        segments: Segments,
        producers: ProducerStates,
        snapshots: ProducerSnapshots,
        epochs: LeaderEpochs,
        unsynced_files: UnsyncedFiles,
        log_start_offset: int,
        recovery_point: int,
        producer_expiration_ms: int,
        cleaner_offset: int,
    ) -> None:
        self.directory = directory
        self.topic, self.partition, self.topic_id = topic, partition, topic_id
        self._config = config
        self.segments = segments
        self.producers, self.snapshots = producers, snapshots
        self._epochs = epochs
        self.leader_epoch = epochs.latest
        self.log_start_offset = log_start_offset
        self.log_end_offset = self._next_offset = segments.active.end_offset
        self.recovery_point = min(recovery_point, self.log_end_offset)
        self.producer_expiration_ms = producer_expiration_ms
        self.cleaner_offset = cleaner_offset  # compaction has been through all below it
        self._unsynced_files = unsynced_files
        # Of the fdatasync that failed: what was written before it may be lost, so that the
        # log takes no more until a restart has read it anew.
        self.sync_failure: StorageWriteError | None = None
        self._staged: list[memoryview] = []
        self._facts: list[BatchFacts] = []
        self._staged_bytes = 0
        self._staged_max_timestamp = NO_TIMESTAMP
        # Where sequential readers go on: offset -> (segment, position). Emptied by whatever
        # changes segments other than by appending.
        self._hints: dict[int, tuple[Segment, int]] = {}

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self.segments.set_index_interval(config.index_interval_bytes)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

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
                    append_time = producer_lookup.timestamp_of(self.segments, original)
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
            entry = self.producers.partial_entry(producer_id)
            if entry is None:
                raise
            earlier = producer_lookup.earlier_batches(self.segments, producer_id, entry)
            self.producers.complete(producer_id, earlier)
            if not earlier:
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
        segment = self.segments.active
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
                self._append_rolling(now_ms)
        except OSError as error:
            self.discard()
            raise StorageWriteError(segment.path, error) from error
        self.producers.undo_log.clear()
        self._forget_staged()
        self.log_end_offset = self._next_offset = end_offset
        return end_offset

    def _append_rolling(self, now_ms: int) -> None:
        """Append batch by batch, beginning a new segment wherever Kafka would.

        On OSError the log has its old segments at their old size again.
        """
        segments = self.segments
        mark, unsynced_mark = segments.mark(), self._unsynced_files.mark()
        snapshot_offset = self.snapshots.latest
        next_offset = self.log_end_offset
        producers_staged = 0
        try:
            for batch, fact in zip(self._staged, self._facts, strict=True):
                size, last_offset, max_timestamp, staged_behind = fact
                if segments.active.should_roll(
                    self._config, size, last_offset, max_timestamp, now_ms
                ):
                    self._roll(next_offset, self.producers.as_of(producers_staged), now_ms)
                segments.active.append([batch], [fact], size)
                next_offset = last_offset + 1
                producers_staged = staged_behind
        except OSError:
            gone = segments.reset(mark)
            self.snapshots.take_back(snapshot_offset, gone)
            self._unsynced_files.reset(unsynced_mark)
            raise

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin another at the log's end. OSError on a full disk."""
        self._roll(self.log_end_offset, self.producers.as_of(0), now_ms)

    def _roll(self, base_offset: int, entries: dict[int, ProducerEntry], now_ms: int) -> None:
        """Begin a segment at `base_offset`, where `entries` is the producers' state."""
        closed = self.segments.roll(base_offset, self._config, now_ms)
        self._take_snapshot(base_offset, entries)
        paths = (closed.path, closed.index.path, closed.time_index.path, self.directory)
        self._unsynced_files.note(base_offset, *paths)

    def _take_snapshot(self, offset: int, entries: dict[int, ProducerEntry]) -> None:
        path = self.snapshots.take(offset, entries)
        if path is not None:
            self._unsynced_files.note(offset, path)

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
            hint = self.segments.find(offset, access)
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

    def begin_epoch(self, epoch: int) -> None:
        """What is appended from now on has this leader epoch."""
        self.leader_epoch = epoch
        # Without the file this is done again after the next start.
        with suppress(OSError):
            if self._epochs.assign(epoch, self.log_end_offset):
                self._epochs.write()

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch up to `epoch`; (-1, -1) if unknown."""
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    # -- shrinking -------------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Hide all below `offset` (-1: everything); the new log start offset.

        Segments below it go with the next look at retention.
        """
        end = self.log_end_offset
        if offset == _TO_THE_END:
            offset = end
        if not 0 <= offset <= end:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, end)
        self._raise_start(offset)
        return self.log_start_offset

    def drop_segments(self, count: int, now_ms: int) -> None:
        """Delete the first `count` segments; a new active one is begun when that is all."""
        segments = self.segments
        due_ms = now_ms + self._config.file_delete_delay_ms
        try:
            if count == len(segments):
                self.roll(now_ms)
            for _ in range(count):
                self.snapshots.remove(segments.drop_first(due_ms))
        except OSError as error:
            raise StorageWriteError(self.directory, error) from error
        finally:
            self._hints.clear()
        self._raise_start(segments[0].base_offset)

    def _raise_start(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self._epochs.cut_start(offset)
        try:
            self._epochs.write()
        except OSError as error:
            raise StorageWriteError(self.directory, error) from error

    def swap_compacted(
        self,
        count: int,
        cleaned: Sequence[CleanedSegment],
        end_offsets: Sequence[int],
        cleaner_offset: int,
        now_ms: int,
    ) -> None:
        """Put what a compaction made of the first `count` segments in their place."""
        due_ms = now_ms + self._config.file_delete_delay_ms
        old = self.segments[:count]
        try:
            self.segments.replace_first(count, cleaned, end_offsets, self._config, due_ms)
        except OSError as error:
            raise StorageWriteError(self.directory, error) from error
        finally:
            self._hints.clear()
        # A segment that was joined to the one before it needs no snapshot any more.
        kept = {self.snapshots.latest, *[one.base_offset for one in cleaned]}
        for segment in old:
            if segment.base_offset not in kept:
                with suppress(OSError):
                    self.snapshots.remove(segment.base_offset)
        self.cleaner_offset = cleaner_offset

    def truncate(self, offset: int) -> None:
        """Remove every batch that holds `offset` or more (a follower's duty in Kafka).

        The log then ends at `offset`, or where the batch began that held it.
        """
        self.discard()
        if offset >= self.log_end_offset:
            return
        try:
            self._truncate(offset)
        except OSError as error:
            raise StorageWriteError(self.directory, error) from error
        finally:
            self._hints.clear()
            self._next_offset = self.log_end_offset

    def _truncate(self, offset: int) -> None:
        segments = self.segments
        end = segments.truncate(offset, self._config)
        self.log_end_offset = end
        self.log_start_offset = min(self.log_start_offset, end)
        self.recovery_point = min(self.recovery_point, end)
        self.cleaner_offset = min(self.cleaner_offset, segments.active.base_offset)
        self._epochs.cut_end(end)
        self._epochs.assign(self.leader_epoch, end)
        self._epochs.write()
        self.snapshots.remove_strays({segment.base_offset for segment in segments}, end)
        self.producers.cut_back(load_producers(self.snapshots, segments, end, 0, []))
        self.snapshots.find_latest()
        self._unsynced_files.note(end, self.directory)

    # -- durability ------------------------------------------------------------------------

    def unsynced(self) -> tuple[list[OpenFile | NamedFile], int]:
        """The files whose sync makes all below the returned offset survive a power cut.

        Directories are among them when files in them are new. Opens nothing; safe to sync in
        a thread.
        """
        files: list[OpenFile | NamedFile] = []
        if self.log_end_offset > self.recovery_point:
            active = self.segments.active
            files.append(active.file.file or NamedFile(active.path))
        files += map(NamedFile, self._unsynced_files)
        return files, self.log_end_offset

    @property
    def needs_sync(self) -> bool:
        return self.log_end_offset > self.recovery_point or len(self._unsynced_files) > 0

    @property
    def has_unsynced_segments(self) -> bool:
        """Whether a closed segment waits for its sync; Kafka begins one at every roll."""
        return self.recovery_point < self.segments.active.base_offset

    def mark_synced(self, offset: int) -> None:
        """What `unsynced` returned with this offset is on disk."""
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))
        self._unsynced_files.forget(offset)

    def flush_indexes(self) -> None:
        """Write index entries that wait in memory (part of a checkpoint)."""
        self.segments.active.try_flush_indexes()

    def close(self, *, is_synced: bool = True) -> None:
        """Leave the files as a clean stop of Kafka's would, and on disk if `is_synced`.

        Else the caller syncs them and says so by `mark_synced`. After a failed sync nothing
        proves that the rest is on disk: the recovery point stays, so that the next start reads
        all behind it anew.
        """
        self.discard()
        try:
            changed = self.segments.flush()
            self._take_snapshot(self.log_end_offset, self.producers.entries)
            if is_synced:
                self._unsynced_files.note(self.log_end_offset, *changed)
                for file in self.unsynced()[0]:
                    file.sync()
        except OSError as error:
            raise StorageWriteError(self.directory, error) from error
        finally:
            self.segments.close()
            self._unsynced_files.clear()
        if self.sync_failure is not None:
            return
        if is_synced:
            self.recovery_point = self.log_end_offset
        self.segments.remove_deleted_files()
