import io
import json
from typing import TYPE_CHECKING

import pytest

from headrace.client.bus import Bus
from headrace.pipelines.definition import Run
from headrace.pipelines.sinks.console import Console, NobodyReadsError
from headrace.pipelines.spans import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rows_are_lines_of_json_and_the_rest_is_counted(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark.createDataFrame(
        [(1, b"text"), (2, b"\xff\x00"), (3, None)], "`a b` int, value binary"
    ).coalesce(1)
    told = list[str]()
    run = Run(spark, Bus(), "r", "a", told.append)

    assert Console(2).open(run).write(rows, Batch(7))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"a b": 1, "value": "text"}, {"a b": 2, "value": "/wA="}]
    assert told == ["batch 7: the first 2 of 3 rows printed"]


def test_a_reader_who_has_read_enough_ends_it(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())

    with pytest.raises(NobodyReadsError):
        Console().open(Run(spark, Bus(), "r", "a")).write(spark.range(1), Batch(0))
