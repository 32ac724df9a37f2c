"""A Delta lake by date and hour: Delta's own log commits a batch together with its number.

Delta leaves out a batch whose (txnAppId, txnVersion) its log has; asking first saves the work.
Small files are merged by OPTIMIZE, in hours that are over. The files it replaces stay for readers
of older versions, until somebody runs VACUUM.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headrace.errors import SinkError
from headrace.pipelines.definition import OpenSink, Run
from headrace.pipelines.sinks.lake.hours import HOUR_COLUMNS, with_hours
from headrace.pipelines.sinks.lake.merge_plan import QUIET_AFTER_MS, SMALL_BYTES, TARGET_BYTES
from headrace.pipelines.sinks.lake.write_options import WriteOptions, apply_settings, max_tasks

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
        self._spark = run.spark
        self._app_id = run.app_id
        self._path = path
        self._options = options
        self._last_batch = last_version(run.spark, path, run.app_id)
        self._optimized_at = time.monotonic()

    def write(self, rows: "DataFrame", batch_id: int) -> bool:
        """Write a batch; one that is in the table already is left out."""
        if batch_id <= self._last_batch:
            return False
        apply_settings(rows.sparkSession)
        (
            with_hours(rows, self._options.time_column)
            .coalesce(max_tasks(rows.sparkSession))
            .write.format("delta")
            .mode("append")
            .option("txnAppId", self._app_id)
            .option("txnVersion", batch_id)
            .option("mergeSchema", "true")
            .option("compression", self._options.compression)
            .option("maxRecordsPerFile", self._options.max_rows_per_file)
            .partitionBy(*HOUR_COLUMNS)
            .save(self._path)
        )
        self._last_batch = batch_id
        return True

    def between_batches(self) -> None:
        """Merge small files of hours that are over, now and then."""
        if not self._options.is_compacting:
            return
        if time.monotonic() - self._optimized_at >= OPTIMIZE_EVERY_S:
            over = datetime.now(UTC) - timedelta(milliseconds=QUIET_AFTER_MS)
            optimize(self._spark, self._path, before=over)
            self._optimized_at = time.monotonic()


def is_delta(spark: "SparkSession", path: str) -> bool:
    """Whether there is a Delta table at `path`."""
    return bool(_log(spark, path).tableExists())


def last_version(spark: "SparkSession", path: str, app_id: str) -> int:
    """The last batch of this app in the table, or -1."""
    log = _log(spark, path)
    if not log.tableExists():
        return -1
    nothing = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    found = log.update(False, nothing, nothing).transactions().get(app_id)
    return int(found.get()) if found.isDefined() else -1


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


def _log(spark: "SparkSession", path: str) -> Any:
    from py4j.protocol import Py4JError

    try:
        jvm: Any = spark._jvm
        return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    except (Py4JError, TypeError) as error:
        raise SinkError(
            f"cannot open the Delta table {path}: is Delta among Spark's jars? "
            "'headrace pipeline setup' fetches it"
        ) from error
