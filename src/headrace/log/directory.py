"""A broker's data directory: its lock, its checkpoints and its partitions' logs.

Crash order: the clean-shutdown marker is gone from disk before anything is written, and
comes back only when everything else is on disk. So a marker that is there is true.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from headrace.config import LogConfig
from headrace.errors import ConfigError, HeadraceError
from headrace.file_lock import FileLock, LockedError
from headrace.log import checkpoints
from headrace.log.checkpoint_writer import CheckpointWriter
from headrace.log.errors import DirectoryInUseError, StorageError, StorageWriteError
from headrace.log.files import FileCache, sync_filesystem
from headrace.log.index_cache import IndexCache
from headrace.log.loading import Opening, create_partition, open_partition
from headrace.log.names import LOG_SUFFIX, is_deleted_directory, parse_partition_directory
from headrace.log.partition_log import PartitionLog
from headrace.log.removal import remove_renamed, rename_away
from headrace.model import TopicPartition

_log = logging.getLogger(__name__)

_LOCK_FILE = ".lock"
# From this many changed logs on, one sync of everything beats a sync of each.
_SYNC_ALL_FROM = 32
# For recovery without `config_for`: a compacted log may have gaps, so none is held against it.
_UNKNOWN_CONFIG = LogConfig(is_compacted=True)


class OpenReport(NamedTuple):
    """What opening a directory found. `repairs`: one sentence each, with file and position."""

    was_clean: bool
    repairs: list[str]
    recovered_partitions: int


class LogDirectory:
    """All partition logs under one path. Event-loop thread only."""

    def __init__(
        self,
        path: Path,
        *,
        node_id: int,
        cluster_id: str | None = None,
        max_open_files: int | None = None,
        expire_producers_ms: int = 86_400_000,
    ) -> None:
        self.path = path
        self.node_id = node_id
        self.cluster_id = cluster_id or ""
        self.was_clean = False
        self.expire_producers_ms = expire_producers_ms
        self.files = FileCache(max_open_files)
        self._indexes = IndexCache()
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_start_offsets: dict[TopicPartition, int] = {}
        self._cleaner_offsets: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        # Deleted, but perhaps still in the checkpoint files, with the number of the last
        # checkpoint that was prepared by then: a partition of the same name must not inherit
        # their offsets after a crash.
        self._deleted: dict[TopicPartition, int] = {}
        self._checkpoints = CheckpointWriter(path)
        self._failed_syncs: set[str] = set()  # whose last life ended with a failed sync
        self._opened_ms = 0
        self._syncs_each = True
        self._lock: FileLock | None = None

    # -- opening ---------------------------------------------------------------------------

    def open(
        self,
        now_ms: int,
        *,
        config_for: Callable[[str], LogConfig] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> OpenReport:
        """Take the directory. After an unclean stop every partition is recovered here.

        `config_for` gives a topic's config for that, `on_progress(done, total)` is called
        after each partition.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise ConfigError("log.dirs", self.path, "it is a file, not a directory") from error
        except OSError as error:
            raise StorageWriteError(self.path, error) from error
        self._lock = _lock(self.path)
        try:
            return self._open(now_ms, config_for or (lambda topic: _UNKNOWN_CONFIG), on_progress)
        except OSError as error:
            self._release()
            raise StorageWriteError(Path(error.filename or self.path), error) from error
        except BaseException:
            self._release()
            raise

    def _open(
        self,
        now_ms: int,
        config_for: Callable[[str], LogConfig],
        on_progress: Callable[[int, int], None] | None,
    ) -> OpenReport:
        self._opened_ms = now_ms
        repairs: list[str] = []
        self.cluster_id, is_new = checkpoints.check_owner(self.path, self.node_id, self.cluster_id)
        self._recovery_points = self._read_offsets(checkpoints.RECOVERY_POINTS, repairs)
        self._log_start_offsets = self._read_offsets(checkpoints.LOG_START_OFFSETS, repairs)
        self._cleaner_offsets = self._read_offsets(checkpoints.CLEANER_OFFSETS, repairs)
        names = {entry.name for entry in self.path.iterdir()}
        for offsets in (self._recovery_points, self._log_start_offsets, self._cleaner_offsets):
            for gone in [name for name in offsets if str(name) not in names]:
                del offsets[gone]
                self._deleted[gone] = self._checkpoints.prepared
        self._high_watermarks = dict(self._recovery_points)
        self._failed_syncs = checkpoints.read_failed_syncs(self.path)
        self.was_clean = checkpoints.take_clean_shutdown(self.path) and not self._failed_syncs
        for name in names:
            if is_deleted_directory(name):
                shutil.rmtree(self.path / name, ignore_errors=True)
        found = {} if self.was_clean else self.partitions_on_disk()
        if is_new and not found:
            self.was_clean = True  # a first start has nothing to recover from
        self._syncs_each = len(found) < _SYNC_ALL_FROM
        for done, (partition, topic_id) in enumerate(sorted(found.items()), 1):
            try:
                self._load(partition, topic_id, config_for(partition.topic), repairs)
            except OSError as error:
                checkpoints.try_note_failed_syncs([self.path / str(partition)], error)
                raise
            if on_progress is not None:
                on_progress(done, len(found))
        if not self._syncs_each:
            try:
                sync_filesystem(self.path)
            except OSError as error:
                checkpoints.try_note_failed_syncs([self.path / str(name) for name in found], error)
                raise
            self._syncs_each = True
        if found:
            self.checkpoint()
        checkpoints.clear_failed_syncs(self.path)
        return OpenReport(self.was_clean, repairs, len(found))

    def _read_offsets(self, name: str, repairs: list[str]) -> dict[TopicPartition, int]:
        offsets, fault = checkpoints.read_offsets(self.path / name)
        if fault is not None:
            repairs.append(f"{self.path / name}: ignored, {fault}")
        return offsets

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- partitions ------------------------------------------------------------------------

    def partitions_on_disk(self) -> dict[TopicPartition, UUID]:
        """Every partition's directory and the topic id in it."""
        found = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                name = parse_partition_directory(entry.name)
                if name is None or not entry.is_dir():
                    continue
                topic_id = checkpoints.read_partition_metadata(Path(entry.path))
                # Without an id it is somebody's own directory whose name ends like a
                # partition's, or one that a crash left before anything was in it.
                if topic_id is not None:
                    found[name] = topic_id
        return found

    def create(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig, now_ms: int
    ) -> PartitionLog:
        """A new empty partition; one that is already there is opened instead."""
        return self.get(topic, partition, topic_id, config, now_ms)

    def get(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        now_ms: int | None = None,
    ) -> PartitionLog:
        """The partition's log, opened or created on first use."""
        name = TopicPartition(topic, partition)
        log = self._logs.get(name)
        if log is None:
            try:
                log = self._load(name, topic_id, config, [], now_ms)
            except OSError as error:
                raise StorageWriteError(self.path / str(name), error) from error
        else:
            if log.topic_id != topic_id:
                self._check_topic_id(log.directory, topic_id)
                log.topic_id = topic_id
            if log.config is not config:
                log.config = config
        return log

    def _load(
        self,
        name: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        repairs: list[str],
        now_ms: int | None = None,
    ) -> PartitionLog:
        directory = self.path / str(name)
        opening = Opening(
            files=self.files,
            indexes=self._indexes,
            now_ms=self._opened_ms if now_ms is None else now_ms,
            producer_expiration_ms=self.expire_producers_ms,
            recovery_point=self._recovery_points.get(name, 0),
            log_start_offset=self._log_start_offsets.get(name, 0),
            cleaner_offset=self._cleaner_offsets.get(name, 0),
            was_clean=self.was_clean,
            syncs=self._syncs_each,
            rewrites=str(name) in self._failed_syncs,
            repairs=repairs,
        )
        is_new = not directory.is_dir()
        if is_new:
            if self.is_remembered(name):
                self.prepare_files()()
        else:
            self._check_topic_id(directory, topic_id)
        make = create_partition if is_new else open_partition
        log = make(directory, name.topic, name.partition, topic_id, config, opening)
        self._logs[name] = log
        return log

    def _check_topic_id(self, directory: Path, topic_id: UUID) -> None:
        found = checkpoints.read_partition_metadata(directory)
        if found is None:
            # Recovery does not know the id either; it comes with the first `get`.
            if topic_id.int:
                checkpoints.write_partition_metadata(directory, topic_id)
        elif found != topic_id:
            raise StorageError(
                f"{directory} belongs to topic id {checkpoints.encode_id(found)}, "
                f"not {checkpoints.encode_id(topic_id)}"
            )

    def keep_producers_for(self, expiration_ms: int) -> None:
        """From now on idempotent producers are forgotten after this much silence, in all logs."""
        self.expire_producers_ms = expiration_ms
        for log in self._logs.values():
            log.producer_expiration_ms = expiration_ms

    def loaded(self) -> Iterable[PartitionLog]:
        return self._logs.values()

    def delete(self, topic: str, partition: int) -> None:
        """Take the partition away at once, with its files."""
        name = TopicPartition(topic, partition)
        self.forget(name)
        remove_renamed(rename_away(self.path, {name}), lambda: False)

    def forget(self, name: TopicPartition) -> None:
        """Let go of a partition that is deleted: nobody uses its directory any more."""
        log = self._logs.pop(name, None)
        if log is not None:
            log.discard()
            for segment in log.segments:
                segment.retire()
        noted = [
            offsets.pop(name, None)
            for offsets in (
                self._high_watermarks,
                self._recovery_points,
                self._log_start_offsets,
                self._cleaner_offsets,
            )
        ]
        if any(offset is not None for offset in noted):
            self._deleted[name] = self._checkpoints.prepared

    def opened(self, name: TopicPartition) -> PartitionLog | None:
        """The partition's log, if it was used by now."""
        return self._logs.get(name)

    def is_current(self, log: PartitionLog) -> bool:
        """Whether the log is in use: its partition may be deleted, and be made again."""
        return self._logs.get(TopicPartition(log.topic, log.partition)) is log

    def is_remembered(self, name: TopicPartition) -> bool:
        """Whether the checkpoint files may still have offsets of a deleted partition."""
        return self._deleted.get(name, -1) >= self._checkpoints.written

    def remembered_topics(self) -> set[str]:
        """The topics of which `is_remembered` says so of some partition."""
        return {name.topic for name in self._deleted if self.is_remembered(name)}

    # -- checkpoints and the end -----------------------------------------------------------

    def checkpoint(self) -> None:
        """Write how far each log is on disk, where it starts and where it ends."""
        for log in self._logs.values():
            log.flush_indexes()
        self.prepare_files()()

    def note(self, log: PartitionLog) -> None:
        """Note for the next checkpoint how far the log is; nothing when it was deleted."""
        if not self.is_current(log):
            return
        name = TopicPartition(log.topic, log.partition)
        self._recovery_points[name] = log.recovery_point
        self._high_watermarks[name] = log.log_end_offset
        # Kafka lists only logs that start inside their first segment.
        if log.log_start_offset > log.segments[0].base_offset:
            self._log_start_offsets[name] = log.log_start_offset
        else:
            self._log_start_offsets.pop(name, None)
        if log.cleaner_offset:
            self._cleaner_offsets[name] = log.cleaner_offset
        else:
            self._cleaner_offsets.pop(name, None)

    def prepare_files(self) -> Callable[[], None]:
        """Note every log; see `prepare_noted`."""
        for log in self._logs.values():
            self.note(log)
        return self.prepare_noted()

    def prepare_noted(self) -> Callable[[], None]:
        """Return what writes all that was noted by now; it may run in any thread."""
        self._deleted = {
            name: number
            for name, number in self._deleted.items()
            if number >= self._checkpoints.written
        }
        files = {
            checkpoints.RECOVERY_POINTS: dict(self._recovery_points),
            checkpoints.LOG_START_OFFSETS: dict(self._log_start_offsets),
            checkpoints.HIGH_WATERMARKS: dict(self._high_watermarks),
            checkpoints.CLEANER_OFFSETS: dict(self._cleaner_offsets),
        }
        return self._checkpoints.prepare(files)

    def close(self, now_ms: int) -> None:
        """Stop cleanly: every file as Kafka would leave it and on disk, then the marker.

        Where a sync failed, now or before, there is no marker: the next start reads the
        logs behind their recovery points anew. The first failure is raised at the end.
        """
        if self._lock is None:
            return
        failures: list[HeadraceError] = []
        try:
            logs = self._logs.values()
            syncs_all = sum([log.needs_sync for log in logs]) >= _SYNC_ALL_FROM
            closed: list[PartitionLog] = []
            for log in logs:
                try:
                    log.close(is_synced=not syncs_all)
                    closed.append(log)
                except StorageWriteError as error:
                    failures.append(error)
                    checkpoints.try_note_failed_syncs([log.directory], error.error)
            if syncs_all:
                self._sync_all(closed, failures)
            is_proven = not failures and all([log.sync_failure is None for log in logs])
            self.prepare_files()()
            if is_proven:
                checkpoints.write_clean_shutdown(self.path)
        except OSError as error:
            failures.append(StorageWriteError(self.path, error))
        finally:
            self._logs.clear()
            self._release()
        if failures:
            raise failures[0]

    def _sync_all(self, closed: list[PartitionLog], failures: list[HeadraceError]) -> None:
        try:
            sync_filesystem(self.path)
        except OSError as error:
            failures.append(StorageWriteError(self.path, error))
            directories = [log.directory for log in self._logs.values()]
            checkpoints.try_note_failed_syncs(directories, error)
            return
        for log in closed:
            if log.sync_failure is None:
                log.mark_synced(log.log_end_offset)


def sizes_on_disk(
    data_dir: Path, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Bytes in `.log` files of each, open or not; 0 where there is no directory yet. Any thread."""
    return {partition: _size(data_dir / str(partition)) for partition in partitions}


def _size(directory: Path) -> int:
    try:
        with os.scandir(directory) as entries:
            return sum([one.stat().st_size for one in entries if one.name.endswith(LOG_SUFFIX)])
    except FileNotFoundError:
        return 0


def _lock(path: Path) -> FileLock:
    """Keep other brokers out, Apache Kafka's among them."""
    file = path / _LOCK_FILE
    try:
        lock = FileLock(file, for_java=True)
    except LockedError as error:
        owner = error.note.strip()
        named = f"process {owner}" if owner.isdigit() else "another broker"
        raise DirectoryInUseError(path, named) from error
    except OSError as error:
        raise StorageWriteError(file, error) from error
    try:
        lock.write(f"{os.getpid()}\n")
    except OSError as error:
        lock.close()
        raise StorageWriteError(file, error) from error
    return lock
