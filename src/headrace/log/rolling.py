"""Beginning new segments, and knowing which files a sync must cover.

Crash order: a new file's directory entry counts as unsynced until a sync covers data in
the file, else an acknowledged message could vanish with the name of its segment.
"""

import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace.errors import StorageWriteError
from headrace.log import leader_epochs
from headrace.log.checkpoints import PARTITION_METADATA
from headrace.log.files import NamedFile, OpenFile
from headrace.log.names import SNAPSHOT_SUFFIX, segment_file
from headrace.log.producer_snapshot import write_snapshot
from headrace.log.producer_state import ProducerEntry
from headrace.log.segment import BatchFacts, Segment

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


def append_rolling(
    log: "PartitionLog", batches: list[memoryview], facts: list[BatchFacts], now_ms: int
) -> None:
    """Append batch by batch, beginning a new segment wherever Kafka would.

    On OSError the log has its old segments at their old size again.
    """
    first = log.segments[-1]
    mark = first.mark()
    count = len(log.segments)
    unsynced_files = dict(log.unsynced_files)
    snapshot_offset = log.snapshot_offset
    next_offset = log.log_end_offset
    producers_staged = 0
    try:
        for batch, fact in zip(batches, facts, strict=True):
            size, last_offset, max_timestamp, staged_behind = fact
            segment = log.segments[-1]
            if segment.should_roll(log.config, size, last_offset, max_timestamp, now_ms):
                roll(log, next_offset, log.producers.as_of(producers_staged), now_ms)
                segment = log.segments[-1]
            segment.append([batch], [fact], size)
            next_offset = last_offset + 1
            producers_staged = staged_behind
    except OSError:
        for segment in log.segments[count:]:
            segment.remove_files()
            if segment.base_offset > snapshot_offset:
                # It holds batches that never were: other ones will have their offsets.
                with suppress(OSError):
                    segment_file(log.directory, segment.base_offset, SNAPSHOT_SUFFIX).unlink()
        del log.segments[count:]
        log.unsynced_files, log.snapshot_offset = unsynced_files, snapshot_offset
        reactivate(first)
        first.reset(mark)
        raise


def roll(
    log: "PartitionLog", base_offset: int, entries: dict[int, ProducerEntry], now_ms: int
) -> None:
    """Close the active segment and begin one at `base_offset`.

    `entries` is the producers' state there. Only creating the segment may fail: indexes
    wait in memory, and a missing snapshot only makes a later start read more.
    """
    old = log.segments[-1]
    config = log.config
    segment = Segment.create(
        log.directory, base_offset, log.files, log.indexes, config.index_interval_bytes, now_ms
    )
    old.finish()
    old.is_active = False
    old.end_offset = base_offset
    log.indexes.admit(old.index)
    take_snapshot(log, base_offset, entries)
    activate(segment, config.segment_jitter_ms, config.segment_ms)
    log.segments.append(segment)
    for path in (old.path, old.index.path, old.time_index.path):
        log.unsynced_files[path] = base_offset + 1
    note_new_files(log, base_offset)


def activate(segment: Segment, jitter_ms: int, segment_ms: int) -> None:
    """Make `segment` the one that is appended to."""
    segment.is_active = True
    if jitter_ms > 0:
        segment.jitter_ms = random.randrange(min(jitter_ms, segment_ms) or 1)


def reactivate(segment: Segment) -> None:
    """The segment behind it is gone: append to this one again."""
    if not segment.is_active:
        segment.is_active = True
        segment.indexes.release(segment.index)


def take_snapshot(log: "PartitionLog", offset: int, entries: dict[int, ProducerEntry]) -> None:
    """Write the producers' state as of `offset`, as Kafka does at each roll and clean stop."""
    if offset <= log.snapshot_offset:
        return
    with suppress(OSError):
        path = write_snapshot(log.directory, offset, entries)
        log.snapshot_offset = offset
        log.unsynced_files[path] = offset + 1


def note_new_files(log: "PartitionLog", offset: int) -> None:
    """Files were created for data from `offset` on: the directory must be synced with it."""
    log.unsynced_files[log.directory] = offset + 1


def note_new_directory(log: "PartitionLog") -> None:
    """The partition's own directory is new: its parent and its small files count too."""
    offset = log.log_end_offset + 1
    log.unsynced_files[log.directory.parent] = offset
    for name in (PARTITION_METADATA, leader_epochs.FILE_NAME):
        log.unsynced_files[log.directory / name] = offset
    note_new_files(log, log.log_end_offset)


def unsynced(log: "PartitionLog") -> list[OpenFile | NamedFile]:
    """What must be synced for everything below the log end to be durable; opens nothing."""
    files: list[OpenFile | NamedFile] = []
    if log.log_end_offset > log.recovery_point:
        active = log.segments[-1]
        files.append(active.file.file or NamedFile(active.path))
    files += map(NamedFile, log.unsynced_files)
    return files


def forget_synced(log: "PartitionLog", offset: int) -> None:
    """A sync that began at log end `offset` is done."""
    log.unsynced_files = {
        path: needed for path, needed in log.unsynced_files.items() if needed > offset
    }


def close(log: "PartitionLog", *, is_synced: bool) -> None:
    """Write indexes and snapshot, sync what is not synced, give descriptors up.

    After a failed sync nothing proves that the rest is on disk: the recovery point stays, so
    that the next start reads all behind it anew.
    """
    active = log.segments[-1]
    had_pending = active.index.has_pending or active.time_index.has_pending
    try:
        active.time_index.maybe_append(active.max_timestamp, active.max_timestamp_offset)
        had_pending = had_pending or active.time_index.has_pending
        for segment in log.segments:
            segment.flush_indexes()
        if active.needs_cut:
            os.truncate(active.path, active.size)
        entries = log.producers.entries
        take_snapshot(log, log.log_end_offset, entries)
        if is_synced:
            if had_pending:
                for path in (active.index.path, active.time_index.path):
                    log.unsynced_files[path] = 0
            for file in unsynced(log):
                file.sync()
    except OSError as error:
        raise StorageWriteError(log.directory, error) from error
    finally:
        for segment in log.segments:
            segment.file.close()
            if segment.index.is_loaded and not segment.is_active:
                log.indexes.release(segment.index)
        log.unsynced_files = {}
    if log.sync_failure is not None:
        return
    log.recovery_point = log.log_end_offset
    for _, path in log.doomed:
        path.unlink(missing_ok=True)
    log.doomed = []
