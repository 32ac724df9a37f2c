"""The schemas of Parquet files, read from their ends, where they keep them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# Reading an end is waiting for the file system, not computing.
_THREADS = 16
# So many ends are held in Java's memory at once.
_AT_ONCE = 1_000
_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"


def schemas_of(spark: "SparkSession", paths: Sequence[str]) -> "list[tuple[StructType, str]]":
    """The different schemas of these files, each with one file that has it."""
    from pyspark.sql.types import StructType

    found = dict[str, tuple[StructType, str]]()
    for start in range(0, len(paths), _AT_ONCE):
        for path, own, physical in _footers(spark, paths[start : start + _AT_ONCE]):
            if (key := own or physical) in found:
                continue
            if own is None:  # another than Spark wrote it
                schema = spark.read.parquet(path).schema
            else:
                schema = StructType.fromJson(_json(own))
            found[key] = schema, path
    return list(found.values())


def _footers(spark: "SparkSession", paths: Sequence[str]) -> Iterator[tuple[str, str | None, str]]:
    jvm: Any = spark._jvm
    conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
    conf.setInt("parquet.metadata.read.parallelism", _THREADS)
    statuses = jvm.java.util.ArrayList()
    for path in paths:
        each = jvm.org.apache.hadoop.fs.Path(path)
        statuses.add(each.getFileSystem(conf).getFileStatus(each))
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader
    for footer in reader.readAllFootersInParallel(conf, statuses, True):
        meta = footer.getParquetMetadata().getFileMetaData()
        own = meta.getKeyValueMetaData().get(_SPARK_SCHEMA)
        physical = "" if own is not None else meta.getSchema().toString()
        yield footer.getFile().toString(), own, physical


def _json(text: str) -> dict[str, Any]:
    import json

    fields: dict[str, Any] = json.loads(text)
    return fields
