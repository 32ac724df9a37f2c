"""A lake of plain Parquet files, exactly once: staged, noted, moved into place, done.

Invariant: a file under `date=…/hour=…` is whole, and a note names it; no row is in two of them,
but for the milliseconds in which compaction swaps files. The order that makes it so:

1. Spark writes the batch below `_headrace/staging`, into a directory of this attempt alone.
2. The note is written, with every move. From here on the batch is in the lake.
3. The files are renamed into place. 4. The note is marked done.

A crash before 2 leaves a directory that the next start removes; after 2, the next start goes on.
"""

from typing import TYPE_CHECKING

from headrace.pipelines.definition import OpenSink, Run
from headrace.pipelines.sinks.lake import staging
from headrace.pipelines.sinks.lake.compaction import Compactor
from headrace.pipelines.sinks.lake.files import HadoopFiles
from headrace.pipelines.sinks.lake.hours import HOUR_COLUMNS, with_hours
from headrace.pipelines.sinks.lake.notes import HOME, Note, Notes, finish_abandoned
from headrace.pipelines.sinks.lake.write_options import WriteOptions, apply_settings, max_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OpenParquetLake(OpenSink):
    """One app's hand on a lake; others may write to it as well."""

    def __init__(self, run: Run, path: str, options: WriteOptions) -> None:
        self._app_id = run.app_id
        self._options = options
        self._files = HadoopFiles(run.spark, path)
        self._files.make_directory(HOME)
        self._notes = Notes(self._files, run.app_id)
        self._compactor = Compactor(
            run.spark, self._files, run.app_id, options.compression, run.tell
        )
        self._recover()
        finish_abandoned(self._files, run.app_id)
        staging.clear_abandoned(self._files)
        self._is_sound = True

    def write(self, rows: "DataFrame", batch_id: int) -> bool:
        """Write a batch; one that is in the lake already is left out."""
        if not self._is_sound:
            self._recover()
        if batch_id <= self._notes.last_batch:
            return False
        self._is_sound = False
        attempt = staging.new_attempt(self._app_id, f"batch-{batch_id}")
        self._stage(rows, attempt)
        moves = list[tuple[str, str]]()
        for number, name in enumerate(staging.staged_files(self._files, attempt)):
            folder = name.rpartition("/")[0]
            target = f"{folder}/{self._app_id}-{batch_id}-{number:05}.parquet"
            moves.append((f"{attempt}/{name}", target))
        if moves:
            self._notes.commit_batch(batch_id, Note(tuple(moves)))
            self._compactor.written(target.rpartition("/")[0] for _, target in moves)
        self._files.delete(attempt)
        self._is_sound = True
        return True

    def between_batches(self) -> None:
        """Merge small files of one hour, if there are enough of them."""
        if self._options.is_compacting and self._is_sound:
            self._compactor.compact_one()

    def _recover(self) -> None:
        self._notes.recover()
        staging.clear_own(self._files, self._app_id)
        self._compactor.release()

    def _stage(self, rows: "DataFrame", attempt: str) -> None:
        apply_settings(rows.sparkSession)
        (
            with_hours(rows, self._options.time_column)
            .coalesce(max_tasks(rows.sparkSession))
            .write.option("compression", self._options.compression)
            .option("maxRecordsPerFile", self._options.max_rows_per_file)
            .partitionBy(*HOUR_COLUMNS)
            .parquet(self._files.path(attempt))
        )
