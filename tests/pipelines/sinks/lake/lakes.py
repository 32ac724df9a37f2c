"""What the lake's tests share: small frames of records, a run, and what a lake holds."""

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.client.bus import Bus
from headrace.pipelines.decoders.raw import Raw
from headrace.pipelines.definition import RECORD_SCHEMA, OpenSink, Pipeline, Run
from headrace.pipelines.running.batch import BatchWriter
from headrace.pipelines.shipped import archive
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spans import Batch, Log, Spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START_MS = 1_794_823_200_000  # 2026-11-16T10:00Z
HOUR_MS = 3_600_000


def records(spark: "SparkSession", first: int, last: int, *, hours: int = 2) -> "DataFrame":
    """Records of topic t, offsets first to last, dealt out over partitions and hours."""
    return spark.range(first, last, 1, 2).selectExpr(
        "cast(concat('k', id) as binary) key",
        "cast(concat('v', id) as binary) value",
        "'t' topic",
        "cast(id % 2 as int) partition",
        "id offset",
        f"timestamp_millis({START_MS} + (id % {hours}) * {HOUR_MS}) timestamp",
        "0 timestampType",
        f"cast(null as {RECORD_SCHEMA.partition('headers ')[2]}) headers",
    )


def batch_of(number: int, first: int, last: int) -> Batch:
    """Batch `number`, of the records first to last as `records` deals them out."""
    ranges = {Log("t", partition, "t-id"): (first, last) for partition in range(2) if first < last}
    return Batch(number, Spans.of(ranges))


def write(sink: OpenSink, rows: "DataFrame", batch: Batch | int) -> bool:
    """Give a sink a batch unless it has it; a number stands for a batch of which no more is known.

    What a run does beyond this, with a batch of which the sink has a part, `writer_to` does.
    """
    if isinstance(batch, int):
        batch = Batch(batch)
    return sink.written().left_of(batch) is not None and sink.write(rows, batch)


def writer_to(spark: "SparkSession", sink: OpenSink) -> BatchWriter:
    """What gives a run's batches to its sinks."""
    pipeline = Pipeline(
        name="p",
        summary="a test",
        source=TopicSource(topics=("t",)),
        decoder=Raw(),
        sinks=(),
        transform=archive.transform,
    )
    writer = BatchWriter(
        pipeline, run_of(spark, "a"), dead_letter_topic="dead", is_stop_asked=lambda: False
    )
    writer.begin([sink])
    return writer


def run_of(spark: "SparkSession", app_id: str, checkpoint: Path | None = None) -> Run:
    """A run without a broker."""
    place = str(checkpoint) if checkpoint else None
    return Run(spark, Bus(), app_id, app_id, tell=lambda text: None, checkpoint=place)


def offsets_in(lake: Path) -> list[int]:
    """What a plain reader, which knows nothing of Spark or headrace, finds in the lake."""
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(lake, format="parquet", partitioning="hive")
    if not dataset.files:
        return []
    found: list[int] = dataset.to_table(columns=["offset"])["offset"].to_pylist()
    return sorted(found)


def data_files(lake: Path) -> list[Path]:
    """The files any tool would read."""
    return sorted(lake.glob("date=*/hour=*/*.parquet"))
