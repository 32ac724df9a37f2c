"""A column of the rows is never taken for one that the lake makes, nor replaced by it."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.sinks.lake.lakes import START_MS, run_of, write

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.lake import LakeSink, read_lake
from headrace.pipelines.sinks.lake.hours import with_hour_fields
from headrace.pipelines.sinks.lake.widening import united

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def seeing_case(spark: "SparkSession") -> "Iterator[SparkSession]":
    """A session of its own would not do: the sinks of a run have the run's."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield spark
    spark.conf.unset("spark.sql.caseSensitive")


def rows(spark: "SparkSession", *columns: str) -> "DataFrame":
    return spark.range(1).selectExpr("id", f"timestamp_millis({START_MS}) timestamp", *columns)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize("name", ["date", "Date", "HOUR"])
def test_a_column_that_the_lake_makes_itself_is_refused_in_any_case(
    spark: "SparkSession", tmp_path: Path, kind: str, name: str
) -> None:
    sink = LakeSink(str(tmp_path), kind).open(run_of(spark, "a"))

    with pytest.raises(SinkError, match=f"the rows have a column {name}, which the lake makes"):
        write(sink, rows(spark, f"date'2001-01-01' as {name}"), 0)

    write(sink, rows(spark, f"date'2001-01-01' as my_{name}"), 0)
    (row,) = read_lake(spark, str(tmp_path)).collect()
    assert row[f"my_{name}"] == date(2001, 1, 1)
    assert (row["date"], row["hour"]) == (date(2026, 11, 16), 10)


def test_where_spark_sees_case_a_parquet_lake_has_both(
    seeing_case: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path)).open(run_of(seeing_case, "a"))

    write(sink, rows(seeing_case, "date'2001-01-01' as Date"), 0)

    (row,) = read_lake(seeing_case, str(tmp_path)).collect()
    assert (row["Date"], row["date"]) == (date(2001, 1, 1), date(2026, 11, 16))


def test_delta_takes_no_names_that_differ_in_case_only_whatever_spark_sees(
    seeing_case: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path), "delta").open(run_of(seeing_case, "a"))

    with pytest.raises(SinkError, match="Date, which the lake makes itself as date, which is the"):
        write(sink, rows(seeing_case, "date'2001-01-01' as Date"), 0)


def test_a_lake_whose_notes_have_such_a_column_is_read(spark: "SparkSession") -> None:
    noted = united([rows(spark, "date'2001-01-01' as Date", "1 as Hour").schema])

    assert with_hour_fields(noted).names == ["id", "timestamp", "date", "hour"]
    assert len(with_hour_fields(noted, is_case_sensitive=True).names) == 6
