"""A transform that needs only some of a batch does not keep the rest from being looked at."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.running.stage import JsonFiles, a_pipeline, a_topic, values_in

from headrace.client.bus import Bus
from headrace.pipelines.definition import Transform
from headrace.pipelines.running.runner import run_pipeline
from headrace.pipelines.running.settings import AVAILABLE_NOW, RunSettings, Trigger
from headrace.pipelines.yaml_pipeline import sql_transform
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_ROWS_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
VALUES = [*range(2000), "bad"]  # one partition: whoever stops early never comes to the last


def first_of_each_task(rows: "DataFrame") -> "DataFrame":
    def first(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        for batch in batches:
            yield batch.slice(0, 1)
            return

    return rows.select("number").mapInArrow(first, "number bigint")


TRANSFORMS: dict[str, Transform] = {
    "limit": lambda rows: rows.limit(3),
    "sql": sql_transform("select number from input limit 3", "here"),
    "none": sql_transform("select number from input where false", "here"),
    "function": first_of_each_task,
}


@pytest.fixture(scope="module")
def bus() -> Iterator[Bus]:
    with running_broker() as broker:
        yield Bus(broker.bootstrap)


@pytest.fixture
def small_batches(spark: "SparkSession") -> Iterator[None]:
    """Python gets a few rows at a time, so that it can stop before it has all."""
    spark.conf.set(_ROWS_A_BATCH, "100")
    yield
    spark.conf.unset(_ROWS_A_BATCH)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_bad_records_are_found_behind_the_place_where_a_transform_stops(
    spark: "SparkSession", bus: Bus, tmp_path: Path, name: str
) -> None:
    from pyspark import cloudpickle

    # Workers explain bad records; they know our package, not its tests.
    cloudpickle.register_pickle_by_value(sys.modules[JsonFiles.__module__])
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    pipeline = a_pipeline(
        a_topic(bus, VALUES, partitions=1),
        JsonFiles(tmp_path / "out"),
        transform=TRANSFORMS[name],
        name=name,
    )
    settings = RunSettings(name=name, state_dir=tmp_path, trigger=Trigger(AVAILABLE_NOW))

    report = run_pipeline(pipeline, bus, settings, spark=spark)

    assert report.progress.dead_letters == 1
    assert values_in(bus, f"{name}.dead-letters") == [b"bad"]
