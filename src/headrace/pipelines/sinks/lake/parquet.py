"""A lake of plain Parquet files, exactly once: staged, noted, moved into place, done.

Invariant: a file under `date=…/hour=…` is whole, and a note names it; no row is in two of them,
but for the milliseconds in which compaction swaps files. The order that makes it so:

1. Spark writes the batch below `_headrace/staging`, into a directory of this attempt alone.
2. The note is written, with every move and with what the app has written then. From here on the
   batch is in the lake.
3. The files are renamed into place. 4. The note is marked done.

A crash before 2 leaves a directory that the next start removes; after 2, the next start goes on.
"""

from typing import TYPE_CHECKING

from headrace.pipelines.definition import OpenSink, Run
from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.sinks.lake import staging
from headrace.pipelines.sinks.lake.compaction import Compactor
from headrace.pipelines.sinks.lake.hours import HOUR_COLUMNS, with_hours
from headrace.pipelines.sinks.lake.lake_schema import LakeSchema
from headrace.pipelines.sinks.lake.layout import refuse_delta
from headrace.pipelines.sinks.lake.notes import HOME, LakeNotes, OvertakenError, finish_abandoned
from headrace.pipelines.sinks.lake.widening import retyped
from headrace.pipelines.sinks.lake.write_options import WriteOptions, apply_settings, max_tasks
from headrace.pipelines.spans import Batch, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OpenParquetLake(OpenSink):
    """One app's hand on a lake; others may write to it as well."""

    def __init__(self, run: Run, path: str, options: WriteOptions) -> None:
        self._app_id = run.app_id
        self._options = options
        self._files = HadoopFiles(run.spark, path)
        refuse_delta(self._files)
        self._files.make_directory(HOME)
        self._schema = LakeSchema(run.spark, self._files)
        self._notes = LakeNotes(self._files, run.app_id)
        self._compactor = Compactor(
            run.spark, self._files, run.app_id, options.compression, run.tell
        )
        self._recover()
        finish_abandoned(self._files, run.app_id)
        staging.clear_abandoned(self._files)
        self._is_sound = True

    def written(self) -> Written:
        """What the notes in the lake say."""
        if self._is_sound:
            self._notes.refresh()
        else:
            self._recover()
            self._is_sound = True
        return self._notes.noted

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Stage the rows and commit them with their note."""
        self._is_sound = False
        attempt = staging.new_attempt(self._app_id, f"batch-{batch.number}")
        self._stage(rows, attempt)
        self._schema.admit(rows.schema)
        # Named by the attempt as well: a lake whose notes were deleted counts anew.
        stem = f"{self._app_id}-{self._notes.next_number}-{attempt.rpartition('-')[2]}"
        moves = list[tuple[str, str]]()
        for number, name in enumerate(staging.staged_files(self._files, attempt)):
            folder = name.rpartition("/")[0]
            moves.append((f"{attempt}/{name}", f"{folder}/{stem}-{number:05}.parquet"))
        is_new = self._notes.commit_batch(tuple(moves), self._notes.noted.after(batch))
        if is_new:
            self._compactor.written(target.rpartition("/")[0] for _, target in moves)
        self._files.delete(attempt)
        if not is_new and self.written().left_of(batch) is not None:
            raise OvertakenError(self._files.root)
        self._is_sound = True
        return is_new

    def between_batches(self) -> None:
        """Merge small files of one hour, if there are enough of them."""
        if self._options.is_compacting and self._is_sound:
            self._compactor.compact_one()

    def _recover(self) -> None:
        self._notes.recover()
        # An attempt that is still at work will not find its files, so it must not note them: the
        # number it would take is taken first.
        while staging.has_own(self._files, self._app_id) and not self._notes.commit_batch(
            (), self._notes.noted
        ):
            self._notes.recover()
        staging.clear_own(self._files, self._app_id)
        self._compactor.release()

    def _stage(self, rows: "DataFrame", attempt: str) -> None:
        apply_settings(rows.sparkSession)
        if self._notes.next_number == 0:
            # The first, or the lake was deleted, and its notes of schemas with it.
            self._schema = LakeSchema(rows.sparkSession, self._files)
        rows = retyped(rows, self._schema.with_rows(rows.schema))
        (
            with_hours(
                rows, self._options.time_column, is_case_sensitive=self._schema.is_case_sensitive
            )
            .coalesce(max_tasks(rows.sparkSession))
            .write.option("compression", self._options.compression)
            .option("maxRecordsPerFile", self._options.max_rows_per_file)
            .partitionBy(*HOUR_COLUMNS)
            .parquet(self._files.path(attempt))
        )
