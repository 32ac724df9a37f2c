"""Any topics to a lake of Parquet or Delta, by date and hour, each record once, nothing left out.

A row has all that a record has, so that `replay` can put it back: key, value, headers, topic,
partition, offset, timestamp and timestamp_type (0: set by the producer, 1: by the broker).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.raw import Raw
from headrace.pipelines.definition import Pipeline, Sink
from headrace.pipelines.sinks.lake import LAKE_OPTIONS
from headrace.pipelines.source import TopicSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS = LAKE_OPTIONS
COLUMNS = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")


def transform(records: "DataFrame") -> "DataFrame":
    """The columns of a record, in the lake's order."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    return records.select(*COLUMNS, F.col("timestampType").alias("timestamp_type"))


def pipeline(options: Mapping[str, str], source: TopicSource, sinks: tuple[Sink, ...]) -> Pipeline:
    """Archive what `source` names."""
    return Pipeline(
        name="archive",
        summary=(__doc__ or "").partition("\n")[0],
        source=source,
        decoder=Raw(),
        sinks=sinks,
        transform=transform,
        options=dict(options),
    )
