"""What pipelines fed by the feed have left behind, read without Spark."""

import contextlib
import sqlite3
from pathlib import Path

import pyarrow.dataset


def rows_in_lake(lake: Path) -> list[tuple[object, ...]]:
    """Partition, offset, time, key and value of each record in a lake of Parquet, in order."""
    names = ["partition", "offset", "timestamp", "key", "value"]
    dataset = pyarrow.dataset.dataset(lake, format="parquet", partitioning="hive")
    table = dataset.to_table(columns=names)
    columns = [table[name].to_pylist() for name in names]
    rows = zip(*columns, strict=True)
    return sorted((p, o, round(t.timestamp() * 1000), k, v) for p, o, t, k, v in rows)


def rows_in_table(database: Path) -> dict[str, tuple[int, int, int]]:
    """Reading, partition and offset by sensor, from the table `readings` of an SQLite file."""
    query = "select sensor, reading, _partition, _offset from readings"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return {sensor: tuple(rest) for sensor, *rest in connection.execute(query)}
