"""The lake: directories of Parquet or Delta by date and hour, each record in them once."""

from headrace.pipelines.sinks.lake.sink import (
    LAKE_OPTIONS,
    LakeSink,
    compact_lake,
    from_uri,
    read_lake,
)

__all__ = ["LAKE_OPTIONS", "LakeSink", "compact_lake", "from_uri", "read_lake"]
