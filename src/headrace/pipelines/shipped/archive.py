"""Any topics to a lake of Parquet or Delta, by date and hour, each record once, nothing left out.

A row has all that a record has, so that `replay` can put it back: key, value, headers, topic,
partition, offset, timestamp and timestamp_type (0: set by the producer, 1: by the broker).
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.raw import Raw
from headrace.pipelines.definition import Pipeline, Sink
from headrace.pipelines.sinks.lake import LAKE_OPTIONS
from headrace.pipelines.source import TopicSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS = LAKE_OPTIONS
# More than other pipelines take at once: rows go from Spark's tasks to files and never through the
# driver, and what a batch costs beside its rows was a third of the time with 500,000.
MAX_ROWS_PER_BATCH = 2_000_000
COLUMNS = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")


def transform(records: "DataFrame") -> "DataFrame":
    """The columns of a record, in the lake's order."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    return records.select(*COLUMNS, F.col("timestampType").alias("timestamp_type"))


def pipeline(options: Mapping[str, str], source: TopicSource, sinks: tuple[Sink, ...]) -> Pipeline:
    """Archive what `source` names."""
    if source.max_rows_per_batch is None:
        source = dataclasses.replace(source, max_rows_per_batch=MAX_ROWS_PER_BATCH)
    return Pipeline(
        name="archive",
        summary=(__doc__ or "").partition("\n")[0],
        source=source,
        decoder=Raw(),
        sinks=sinks,
        transform=transform,
        options=dict(options),
    )
