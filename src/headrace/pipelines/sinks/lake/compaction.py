"""Compaction of a Parquet lake: small files of an hour become one, ordered as in the log.

It is committed by a note, like a batch: the merged file is added, then the small ones are removed.
In between, for milliseconds, a reader may see rows twice; none is ever missing. Only one at a time
compacts a lake, by a lock with a lease, and no file is touched that a note still speaks of.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from headrace.pipelines.definition import RECORD_COLUMN
from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import FileStatus, HadoopFiles, TakenError
from headrace.pipelines.sinks.lake import staging
from headrace.pipelines.sinks.lake.lake_schema import LakeSchema
from headrace.pipelines.sinks.lake.layout import data_files, hour_folders
from headrace.pipelines.sinks.lake.merge_plan import TINY_FILES, is_quiet, merge_all, merge_tiny
from headrace.pipelines.sinks.lake.notes import HOME, LakeNote, LakeNotes, pending_files
from headrace.pipelines.sinks.lake.widening import ClashError
from headrace.pipelines.sinks.lake.write_options import apply_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCK = f"{HOME}/compacting"
# A merge takes seconds; who holds the lock for longer is dead, or too late to commit.
LEASE_MS = 3600 * 1000
# A run that starts looks for what the run before it left, this far back; `compact` does the rest.
LOOK_BACK_DAYS = 2
_LOG_ORDER = ("topic", "partition", "offset")


class Compactor:
    """Merges for one app. Used by one thread, between batches."""

    def __init__(
        self,
        spark: "SparkSession",
        files: HadoopFiles,
        app_id: str,
        compression: str,
        tell: Callable[[str], None] = print,
    ) -> None:
        self._spark = spark
        self._files = files
        self._app_id = app_id
        self._compression = compression
        self._tell = tell
        self._schema = LakeSchema(spark, files)
        # Of each hour that may need it: files written since the last look, and when the last was.
        self._hours: dict[str, tuple[int, int]] | None = None

    def written(self, folders: Iterable[str]) -> None:
        """Take note of the hours of new files."""
        hours = self._known_hours()
        for folder in folders:
            hours[folder] = (hours.get(folder, (0, 0))[0] + 1, _now_ms())

    def compact_one(self) -> None:
        """Merge one group of files of one hour, so that the next batch does not wait for long."""
        hours = self._known_hours()
        for folder, (new_files, written_ms) in list(hours.items()):
            is_over = is_quiet(folder, written_ms, _now_ms())
            if not is_over and new_files < TINY_FILES:
                continue
            entries = data_files(self._files, folder)
            groups = merge_all(entries) if is_over else merge_tiny(entries)
            if groups and self._is_merged(folder, groups[0]):
                return
            if is_over:
                del hours[folder]
            else:
                hours[folder] = (0, written_ms)

    def compact_all(self) -> tuple[int, int]:
        """Merge all small files there are; the numbers of files merged and made."""
        merged = made = 0
        for folder in hour_folders(self._files):
            for group in merge_all(data_files(self._files, folder)):
                count = self.merge(folder, group)
                if count is None:
                    raise SinkError(
                        f"{self._files.root} is being compacted by another ({self._holder()}); "
                        f"if that is dead, delete {self._files.path(LOCK)}"
                    )
                merged, made = merged + count, made + (count > 0)
        return merged, made

    def release(self) -> None:
        """Let go of the lock, also of one that an earlier run of this app left."""
        if self._holder() == self._app_id:
            self._files.delete(LOCK)

    def merge(self, folder: str, group: Sequence[FileStatus]) -> int | None:
        """Merge these files of an hour; how many were, or None if another compacts this lake."""
        token = f"{_now_ms()}-{uuid4().hex[:8]}"
        if not self._take_lock(token):
            return None
        try:
            spoken_for = pending_files(self._files)
            names = [f"{folder}/{entry.name}" for entry in group]
            names = [name for name in names if name not in spoken_for]
            return self._merge(folder, names, token) if len(names) > 1 else 0
        finally:
            self.release()

    def _is_merged(self, folder: str, group: Sequence[FileStatus]) -> bool:
        """Try it. What Spark cannot merge stays as it is: the batches matter more."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return bool(self.merge(folder, group))
        except (ClashError, Py4JError, PySparkException) as error:
            reason = str(error).partition("\n")[0]
            self._tell(f"small files of {folder} in {self._files.root} stay as they are: {reason}")
            return False

    def _merge(self, folder: str, names: Sequence[str], token: str) -> int:
        attempt = staging.new_attempt(self._app_id, "compaction")
        apply_settings(self._spark)
        # All columns the lake has, so that a tool that looks at one file only sees them too.
        rows = self._spark.read.schema(self._schema.admit_files(names)).parquet(
            *(self._files.path(name) for name in names)
        )
        # One task, so one file; it is ordered by spilling to disk, not in memory alone.
        in_log_order(rows.coalesce(1)).write.option("compression", self._compression).parquet(
            self._files.path(attempt)
        )
        moves = [
            (f"{attempt}/{name}", f"{folder}/{self._app_id}-merged-{token}-{number:05}.parquet")
            for number, name in enumerate(staging.staged_files(self._files, attempt))
        ]
        is_ours = self._held_by() == token
        if is_ours:
            note = LakeNote(tuple(moves), tuple(names))
            LakeNotes(self._files, self._app_id).commit_compaction(token, note)
        self._files.delete(attempt)
        return len(names) if is_ours else 0

    def _known_hours(self) -> dict[str, tuple[int, int]]:
        if self._hours is None:
            today = datetime.now(UTC).date()
            days = [today - timedelta(days=back) for back in range(LOOK_BACK_DAYS, -1, -1)]
            self._hours = {
                f"date={day}/{hour.name}": (TINY_FILES, hour.modified_ms)
                for day in days
                for hour in self._files.list(f"date={day}")
            }
        return self._hours

    def _take_lock(self, token: str) -> bool:
        lock = self._lock()
        if lock and lock["app"] != self._app_id and _now_ms() - int(lock["since_ms"]) < LEASE_MS:
            return False
        self._files.delete(LOCK)
        text = json.dumps({"app": self._app_id, "token": token, "since_ms": str(_now_ms())})
        try:
            self._files.write_whole(LOCK, text)
        except TakenError:
            return False  # another was quicker
        return self._held_by() == token

    def _holder(self) -> str | None:
        lock = self._lock()
        return lock["app"] if lock else None

    def _held_by(self) -> str | None:
        lock = self._lock()
        if not lock or _now_ms() - int(lock["since_ms"]) >= LEASE_MS:
            return None
        return lock["token"]

    def _lock(self) -> dict[str, str] | None:
        if not self._files.exists(LOCK):
            return None
        fields: dict[str, str] = json.loads(self._files.read(LOCK))
        return fields


def in_log_order(rows: "DataFrame") -> "DataFrame":
    """Order each task's rows by topic, partition and offset, where they have them."""
    if RECORD_COLUMN in rows.columns:
        return rows.sortWithinPartitions(*(f"{RECORD_COLUMN}.{name}" for name in _LOG_ORDER))
    if set(_LOG_ORDER) <= set(rows.columns):
        return rows.sortWithinPartitions(*_LOG_ORDER)
    return rows


def _now_ms() -> int:
    return int(time.time() * 1000)
