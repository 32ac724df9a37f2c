from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.sinks.lake.lakes import records, run_of

from headrace.pipelines.sinks.lake import LakeSink, compact, read_lake
from headrace.pipelines.sinks.lake.delta import last_version, optimize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_delta_lake_has_each_batch_once(spark: "SparkSession", tmp_path: Path) -> None:
    place = str(tmp_path / "a lake")
    sink = LakeSink(place, "delta")
    opened = sink.open(run_of(spark, "a"))
    assert opened.write(records(spark, 0, 4), 7)

    assert not opened.write(records(spark, 0, 4), 7)
    assert not sink.open(run_of(spark, "a")).write(records(spark, 0, 4), 7)
    assert offsets_of(spark, place) == [0, 1, 2, 3]


@pytest.mark.slow
def test_delta_itself_stops_who_does_not_ask_and_merges_small_files(
    spark: "SparkSession", tmp_path: Path
) -> None:
    place = str(tmp_path)
    sink = LakeSink(place, "delta")
    opened = sink.open(run_of(spark, "a"))
    opened.write(records(spark, 0, 4), 0)
    opened.write(records(spark, 4, 8), 1)
    assert sink.open(run_of(spark, "b")).write(records(spark, 8, 12), 0)
    assert last_version(spark, place, "a") == 1

    opened._last_batch = -1  # type: ignore[attr-defined]
    opened.write(records(spark, 4, 8), 1)

    assert offsets_of(spark, place) == list(range(12))
    rows = read_lake(spark, place)
    assert rows.where("hour = 11 and date = '2026-11-16'").count() == 6
    assert dict(rows.dtypes)["date"] == "date"
    assert optimize(spark, place, before=datetime(2026, 11, 16, 10, tzinfo=UTC)) == (0, 0)
    merged, made = compact(spark, place)
    assert (merged > made, made) == (True, 2)
    assert offsets_of(spark, place) == list(range(12))


def offsets_of(spark: "SparkSession", place: str) -> list[int]:
    return sorted(row[0] for row in read_lake(spark, place).select("offset").collect())
