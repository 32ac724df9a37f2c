import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from tests.support.output import told_by_us

from headrace.pipelines.spark.session import log_file_of, open_session
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_session_reads_and_writes_topics(spark: "SparkSession") -> None:
    with running_broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(100):
            producer.produce("numbers", str(number))
        producer.flush()
        options = {"kafka.bootstrap.servers": broker.bootstrap}

        numbers = spark.read.format("kafka").options(**options).option("subscribe", "numbers")
        numbers.load().write.format("kafka").options(**options).option("topic", "copy").save()
        copy = spark.read.format("kafka").options(**options).option("subscribe", "copy").load()

        assert sorted(int(row.value) for row in copy.collect()) == list(range(100))


def test_an_open_session_is_returned_as_it_is(spark: "SparkSession") -> None:
    assert open_session("another", master="local[7]") is spark
    assert spark.sparkContext.master == "local[2,4]"


def test_workers_are_this_python_without_the_working_directory(spark: "SparkSession") -> None:
    def look(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        import pyarrow

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict(
                {"python": [sys.executable], "path": [os.pathsep.join(sys.path)]}
            )

    row = spark.range(1, numPartitions=1).mapInArrow(look, "python string, path string").first()

    assert row
    assert row.python == sys.executable
    assert not {"", str(Path.cwd())} & set(row.path.split(os.pathsep))


def test_times_are_utc_whatever_the_machine_says(spark: "SparkSession") -> None:
    row = spark.sql("select cast(timestamp_seconds(0) as string) as epoch").first()

    assert row
    assert row.epoch == "1970-01-01 00:00:00"


def test_a_task_that_fails_is_tried_again(spark: "SparkSession", tmp_path: Path) -> None:
    marks = str(tmp_path)

    def fail_twice(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        attempt = len(list(Path(marks).iterdir()))
        if attempt < 2:
            Path(marks, str(attempt)).touch()
            raise OSError("not yet")
        yield from batches

    rows = spark.range(3, numPartitions=1).mapInArrow(fail_twice, "id bigint").collect()

    assert len(rows) == 3


def test_a_lake_is_written_without_a_sort(spark: "SparkSession", tmp_path: Path) -> None:
    spark.sql(
        f"create table hours (id bigint, hour bigint) using parquet partitioned by (hour) "
        f"location '{tmp_path / 'hours'}'"
    )
    try:
        plan = spark.sql("explain insert into hours select id, id % 10 from range(100)").first()
    finally:
        spark.sql("drop table hours")

    assert plan
    assert "WriteFiles" in plan.plan
    assert "Sort" not in plan.plan


def test_delta_is_there(spark: "SparkSession", tmp_path: Path) -> None:
    table = str(tmp_path / "delta")

    spark.range(5).write.format("delta").save(table)

    assert spark.read.format("delta").load(table).count() == 5


def test_what_java_says_is_in_the_log_file(spark: "SparkSession") -> None:
    log_file = log_file_of(spark)
    assert log_file

    logger = spark.sparkContext._jvm.org.slf4j.LoggerFactory.getLogger("test")  # type: ignore[union-attr]
    logger.warn("a word from Java")

    assert "WARN test: a word from Java" in log_file.read_text("utf-8")


def test_a_faulty_query_prints_nothing(
    spark: "SparkSession", capfd: pytest.CaptureFixture[str]
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="celcius"):
        spark.sql("select celcius from range(1)")

    captured = capfd.readouterr()
    assert (captured.out, told_by_us(captured.err)) == ("", [])
