"""How a lake's files are written, with the reason for each default."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# 600,000 JSON messages of 90 bytes, written twice: 7.6 MB with zstd, 17.7 MB with snappy, at the
# same CPU time within what two runs differ by.
DEFAULT_COMPRESSION = "zstd"
COMPRESSIONS = ("zstd", "snappy", "lz4_raw", "gzip", "none")
# 4 million messages of 100 bytes are 50 to 150 MB of Parquet: large enough to read fast, small
# enough to be shared out among tasks.
MAX_ROWS_PER_FILE = 4_000_000
# Files that one task keeps open, one for each hour it meets; with more, Spark sorts what is left.
# Each buffers its rows, so this also bounds memory; batches of a live topic meet one or two.
MAX_OPEN_HOURS = 16
# Tasks, and so files, for each core, batch and hour. Small partitions of a topic share a task.
TASKS_PER_CORE = 4

_SETTINGS = {
    # Spark sorts every batch by hour unless tasks may keep several files open.
    "spark.sql.maxConcurrentOutputFileWriters": ("0", str(MAX_OPEN_HOURS)),
    # Spark's default is deprecated in Parquet; this is exact for Kafka's milliseconds.
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MICROS"),
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What may be chosen."""

    time_column: str | None = None  # None: `_record.timestamp`, or else `timestamp`
    compression: str = DEFAULT_COMPRESSION
    max_rows_per_file: int = MAX_ROWS_PER_FILE
    is_compacting: bool = True


def apply_settings(spark: "SparkSession") -> None:
    """Set what Spark takes from the session only, unless the user has set it."""
    for name, (untouched, value) in _SETTINGS.items():
        if spark.conf.get(name) == untouched:
            spark.conf.set(name, value)


def max_tasks(spark: "SparkSession") -> int:
    """How many tasks write a batch at most."""
    return TASKS_PER_CORE * spark.sparkContext.defaultParallelism
