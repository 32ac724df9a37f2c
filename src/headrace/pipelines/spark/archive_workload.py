"""What a pipeline does, once and small, so that Java loads the classes it will need.

`python -m headrace.pipelines.spark.archive_workload BOOTSTRAP TOPIC ARCHIVE LOG_FILE` leaves a
class-data archive. The topic has JSON records with a field `number`.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError
from headrace.pipelines.spark.session import close_session, open_session
from headrace.pipelines.spark.settings import JAVA_OPTIONS

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

# Java writes the archive when it ends; hundreds of lines on classes it leaves out are no news.
_FLAGS = "-XX:ArchiveClassesAtExit={archive} -Xlog:disable -XX:TieredStopAtLevel=1"
_DUMP_TIMEOUT_S = 300


def run_workload(spark: "SparkSession", bootstrap: str, topic: str, directory: Path) -> None:
    """Read, decode, count, write: as a batch and as a stream."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    records = spark.read.format("kafka").options(**options).load()
    _decoded(records).groupBy("number").count().orderBy("number").toArrow()

    def write(rows: "DataFrame", batch_id: int) -> None:
        kept = rows.persist()
        parquet = directory / "lake" / str(batch_id)
        _decoded(kept).write.partitionBy("date", "hour").parquet(str(parquet))
        _decoded(kept).write.format("delta").mode("append").save(str(directory / "delta"))
        sent = kept.select("key", "value", "headers")
        kafka = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
        sent.limit(1).write.format("kafka").options(**kafka).option("includeHeaders", "true").save()
        kept.select("value").mapInArrow(_same, "value binary").toArrow()
        kept.unpersist()

    stream = spark.readStream.format("kafka").options(**options).load()
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.read.parquet(str(directory / "lake" / "*")).count()


def _decoded(records: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    fields = f.from_json(f.col("value").cast("string"), "number int, text string")
    return records.select(
        fields.alias("json"),
        f.date_format("timestamp", "yyyy-MM-dd").alias("date"),
        f.hour("timestamp").alias("hour"),
        *("key", "partition", "offset", "timestamp"),
    ).select("json.*", "date", "hour", "key", "partition", "offset", "timestamp")


def _same(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
    yield from batches


def main(bootstrap: str, topic: str, archive: str, log_file: str) -> int:
    """Run the workload in a session of its own; the archive is there when this returns."""
    conf = {JAVA_OPTIONS: _FLAGS.format(archive=archive)}
    try:
        spark = open_session("headrace-class-archive", conf=conf, log_file=Path(log_file))
        with tempfile.TemporaryDirectory(prefix="headrace-class-archive-") as directory:
            run_workload(spark, bootstrap, topic, Path(directory))
        close_session(spark, timeout_s=_DUMP_TIMEOUT_S)
    except HeadraceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
