from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.sinks.lake.lakes import records, run_of, write

from headrace.pipelines.sinks.lake import LakeSink, compact_lake, read_lake
from headrace.pipelines.sinks.lake.delta import optimize
from headrace.pipelines.spans import Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_delta_lake_has_each_batch_once(spark: "SparkSession", tmp_path: Path) -> None:
    place = str(tmp_path / "a lake")
    sink = LakeSink(place, "delta")
    opened = sink.open(run_of(spark, "a"))
    assert write(opened, records(spark, 0, 4), 7)

    assert not write(opened, records(spark, 0, 4), 7)
    assert not write(sink.open(run_of(spark, "a")), records(spark, 0, 4), 7)
    assert offsets_of(spark, place) == [0, 1, 2, 3]


@pytest.mark.slow
def test_apps_share_a_delta_table_and_small_files_are_merged(
    spark: "SparkSession", tmp_path: Path
) -> None:
    place = str(tmp_path)
    sink = LakeSink(place, "delta")
    opened = sink.open(run_of(spark, "a"))
    write(opened, records(spark, 0, 4), 0)
    write(opened, records(spark, 4, 8), 1)
    assert write(sink.open(run_of(spark, "b")), records(spark, 8, 12), 0)
    assert opened.written() == Written(1)

    assert offsets_of(spark, place) == list(range(12))
    rows = read_lake(spark, place)
    assert rows.where("hour = 11 and date = '2026-11-16'").count() == 6
    assert dict(rows.dtypes)["date"] == "date"
    assert optimize(spark, place, before=datetime(2026, 11, 16, 10, tzinfo=UTC)) == (0, 0)
    merged, made = compact_lake(spark, place)
    assert (merged > made, made) == (True, 2)
    assert offsets_of(spark, place) == list(range(12))


def offsets_of(spark: "SparkSession", place: str) -> list[int]:
    return sorted(row[0] for row in read_lake(spark, place).select("offset").collect())
