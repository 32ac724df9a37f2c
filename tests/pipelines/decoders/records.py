"""Records for tests of decoders: values at offsets 0, 1, … of one partition."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.pipelines.definition import RECORD_SCHEMA, Decoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Decoded(NamedTuple):
    """What became of one value."""

    fields: dict[str, Any]  # without those that are null
    error: str | None
    is_tombstone: bool


def records_of(spark: "SparkSession", values: Sequence[bytes | None]) -> "DataFrame":
    rows = [
        (b"k%d" % offset, value, "in", 0, offset, datetime(2026, 1, 1), 0, [("h", b"1")])
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, RECORD_SCHEMA)


def decode(
    spark: "SparkSession", decoder: Decoder, values: Sequence[bytes | None]
) -> list[Decoded]:
    """Decode all values with one job; the result is in their order."""
    rows = decoder.decode(records_of(spark, values)).collect()
    rows.sort(key=lambda row: row["_record"].offset)
    assert len(rows) == len(values)
    return [
        Decoded(
            {
                name: value
                for name, value in row.asDict(recursive=True).items()
                if value is not None and name not in ("_record", "_error")
            },
            row["_error"],
            row["_record"].is_tombstone,
        )
        for row in rows
    ]
