from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.sinks.topics import Seen, produce

from headrace.client.bus import Bus
from headrace.pipelines import registry
from headrace.pipelines.definition import RECORD_SCHEMA
from headrace.pipelines.running.runner import run_pipeline
from headrace.pipelines.running.settings import RunSettings, Trigger
from headrace.pipelines.shipped import archive
from headrace.pipelines.sinks.lake import LakeSink, read_lake
from headrace.pipelines.sinks.uri import parse_sink
from headrace.pipelines.source import TopicSource
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME_MS = 1_794_823_200_000  # 2026-11-16T10:00Z


def test_it_is_found_and_built_with_a_lake() -> None:
    module = registry.find("archive")

    built = module.build({"compact": "off"}, TopicSource(topics=("t",)), [LakeSink("lake")])

    assert module.summary.startswith("Any topics to a lake")
    assert built.source.describe() == "topic t from the oldest"
    assert not built.decoder.can_fail


@pytest.mark.spark
def test_a_topic_is_in_the_lake_once_after_two_runs(spark: "SparkSession", tmp_path: Path) -> None:
    settings = RunSettings(
        name="archive-test", state_dir=tmp_path / "state", trigger=Trigger("available-now")
    )
    lake = tmp_path / "lake"
    source = TopicSource(topics=("t",), max_rows_per_batch=4)
    built = registry.find("archive").build({}, source, [parse_sink(f"parquet:{lake}", {})])
    with running_broker() as broker:
        for first in (0, 10):
            records = [
                Seen(0, 0, None, f"v{number}".encode(), TIME_MS + number, (("h", b"1"),))
                for number in range(first, first + 10)
            ]
            produce(broker.bootstrap, "t", records)
            run_pipeline(built, Bus(broker.bootstrap), settings, spark=spark)

    rows = read_lake(spark, str(lake)).orderBy("offset").collect()
    assert [(row["offset"], bytes(row["value"])) for row in rows] == [
        (number, f"v{number}".encode()) for number in range(20)
    ]
    assert {(row["topic"], row["timestamp_type"], row["hour"]) for row in rows} == {("t", 0, 10)}
    assert rows[0]["headers"][0].asDict() == {"key": "h", "value": bytearray(b"1")}


@pytest.mark.spark
def test_a_row_has_all_that_a_record_has(spark: "SparkSession") -> None:
    records = spark.createDataFrame([], RECORD_SCHEMA)

    rows = archive.transform(records)

    assert rows.columns == [*archive.COLUMNS, "timestamp_type"]
    assert {name for name, _ in records.dtypes} - set(rows.columns) == {"timestampType"}
