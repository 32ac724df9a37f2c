"""A Delta lake by date and hour: Delta's own log commits a batch with what was written by it.

Delta leaves out a commit whose (txnAppId, txnVersion) its log has, so of two attempts at the next
version one is taken; `delta_notes` tells which, and what the app has. Columns are added and widened
as in a lake of Parquet, by Delta's own means. Small files are merged by OPTIMIZE, in hours that are
over. The files it replaces stay for readers of older versions, until somebody runs VACUUM.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from headrace.pipelines.definition import OpenSink, Run
from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.sinks.lake.delta_notes import DeltaNotes, user_metadata
from headrace.pipelines.sinks.lake.delta_table import open_table
from headrace.pipelines.sinks.lake.hours import HOUR_COLUMNS, with_hours
from headrace.pipelines.sinks.lake.layout import refuse_parquet
from headrace.pipelines.sinks.lake.merge_plan import QUIET_AFTER_MS, SMALL_BYTES, TARGET_BYTES
from headrace.pipelines.sinks.lake.notes import OvertakenError
from headrace.pipelines.sinks.lake.widening import retyped, united
from headrace.pipelines.sinks.lake.write_options import WriteOptions, apply_settings, max_tasks
from headrace.pipelines.spans import Batch, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# OPTIMIZE looks at the whole log of the table, so not after every batch.
OPTIMIZE_EVERY_S = 600.0
_OPTIMIZE_SETTINGS = {
    "spark.databricks.delta.optimize.minFileSize": str(SMALL_BYTES),
    "spark.databricks.delta.optimize.maxFileSize": str(TARGET_BYTES),
}


class OpenDeltaLake(OpenSink):
    """One app's hand on a Delta table; others may write to it as well."""

    def __init__(self, run: Run, path: str, options: WriteOptions) -> None:
        self._run = run
        self._spark = run.spark
        self._path = path
        self._options = options
        refuse_parquet(HadoopFiles(run.spark, path))
        self._notes = DeltaNotes(run.spark, path, run.app_id)
        self._optimized_at = time.monotonic()

    def written(self) -> Written:
        """What Delta's log says, asked anew: a write that failed may have arrived."""
        self._notes.refresh(open_table(self._spark, self._path))
        return self._notes.said.written

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Append the rows; Delta leaves out a version that its log has."""
        apply_settings(rows.sparkSession)
        said = self._notes.next(batch)
        (
            with_hours(self._fitting(rows), self._options.time_column)
            .coalesce(max_tasks(rows.sparkSession))
            .write.format("delta")
            .mode("append")
            .option("txnAppId", self._run.app_id)
            .option("txnVersion", self._notes.version + 1)
            .option("userMetadata", user_metadata(said))
            .option("mergeSchema", "true")
            .option("compression", self._options.compression)
            .option("maxRecordsPerFile", self._options.max_rows_per_file)
            .partitionBy(*HOUR_COLUMNS)
            .save(self._path)
        )
        written = self.written()
        self._notes.keep()
        if self._notes.said.attempt == said.attempt:
            return True
        if written.left_of(batch) is not None:
            raise OvertakenError(self._path)
        return False

    def _fitting(self, rows: "DataFrame") -> "DataFrame":
        """The rows in the table's types, which are widened where the rows' are wider.

        Names are folded whatever Spark sees: so does Delta.
        """
        table = open_table(self._spark, self._path)
        if table is None:
            united([rows.schema])
            return rows
        whole = united([table.schema, rows.schema])
        if columns := table.widen(whole):
            wider = ", ".join(f"{column.path} {column.kind}" for column in columns)
            self._run.tell(
                f"Delta table {self._path} has wider columns now ({wider}); whoever reads it has "
                "to know Delta's type widening"
            )
        return retyped(rows, whole)

    def between_batches(self) -> None:
        """Merge small files of hours that are over, now and then."""
        if not self._options.is_compacting:
            return
        if time.monotonic() - self._optimized_at >= OPTIMIZE_EVERY_S:
            over = datetime.now(UTC) - timedelta(milliseconds=QUIET_AFTER_MS)
            optimize(self._spark, self._path, before=over)
            self._optimized_at = time.monotonic()


def optimize(
    spark: "SparkSession", path: str, *, before: datetime | None = None
) -> tuple[int, int]:
    """Merge small files, of hours before that of `before`; the numbers of files merged and made."""
    for name, value in _OPTIMIZE_SETTINGS.items():
        spark.conf.set(name, value)
    where = ""
    if before is not None:
        day = f"DATE'{before.date()}'"
        where = f" WHERE date < {day} OR (date = {day} AND hour < {before.hour})"
    table = path.replace("`", "``")
    metrics = spark.sql(f"OPTIMIZE delta.`{table}`{where}").collect()[0]["metrics"]
    return int(metrics["numFilesRemoved"]), int(metrics["numFilesAdded"])
