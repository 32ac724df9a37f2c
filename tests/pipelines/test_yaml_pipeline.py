"""Pipelines as YAML files: what they may say, and the line of what they may not."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.pipelines import Json, Raw, TopicSource, registry
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.yaml_pipeline import sql_transform

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOT = """
    name: hot
    summary: Hot sensors
    source:
      topics: [readings, more.readings]
      from: 2026-11-16
      max_rows_per_batch: 1000
    format: json
    schema: sensor string not null, celsius double
    sql: select sensor from input where celsius > 60
    sinks:
      - console:
      - uri: sqlite:hot.db
        table: hot
        key: [sensor, at]
    dead_letter_topic: hot.bad
"""


def write(directory: Path, text: str) -> str:
    path = directory / "hot.yaml"
    path.write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
    return str(path)


def test_a_yaml_file_is_a_pipeline(tmp_path: Path) -> None:
    found = registry.find(write(tmp_path, HOT))
    pipeline = found.build()

    assert (found.name, found.summary) == ("hot", "Hot sensors")
    assert pipeline.source == TopicSource(
        topics=("readings", "more.readings"), start="2026-11-16", max_rows_per_batch=1000
    )
    assert isinstance(pipeline.decoder, Json)
    assert [sink.describe() for sink in pipeline.sinks][1].count("hot") >= 1
    assert len(pipeline.sinks) == 2
    assert pipeline.dead_letter_topic == "hot.bad"


def test_the_least_a_file_needs_is_a_source_and_a_sink(tmp_path: Path) -> None:
    pipeline = registry.find(write(tmp_path, "source: {topics: a}\nsinks: 'console:'")).build()

    assert pipeline.name == "hot"  # as the file is called
    assert isinstance(pipeline.decoder, Raw)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: a\nsorce: {}", r"line 2: a pipeline has no sorce; did you mean source\?"),
        ("source:\n  topic: a", r"line 2: source has no topic; did you mean topics\?"),
        ("name: a\nname: b", "line 2: name is there twice"),
        ("source:\n  topics: [a]\n  from: yesterday", "line 2: 'yesterday' is no position"),
        ("source: {topics: [a], pattern: b}", "not both"),
        ("source: {min_partitions: many}", "line 1: min_partitions is a number, not many"),
        ("format: jsn\nschema: a int", "line 1: .*jsn"),
        ("name: a\nformat: json\nschema: a innt", "line 2: .*innt"),
        ("schema: a int", "line 1: schema needs a format"),
        ("sinks:\n  - console:\n  - nosuch:x", "line 3: no sink is called nosuch"),
        ("sinks:\n  - table: hot", "line 2: a sink needs its uri"),
        ("sql: [a]", "line 1: a text is wanted here"),
        ("name:", "line 1: a text is wanted here"),
        ("a: [1", "line 1: "),
        ("- a", "line 1: a pipeline is made of"),
        ("", "is empty"),
        ("name: a b", "'a b' is no name for a pipeline"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(PipelineDefinitionError, match=complaint) as raised:
        registry.find(path)
    assert "\n" not in str(raised.value)
    assert "hot.yaml" in str(raised.value)


@pytest.mark.spark
def test_sql_is_a_pure_function_of_the_input(spark: "SparkSession") -> None:
    transform = sql_transform("select sensor, '{}' as x from input where celsius > 60", "here")
    rows = spark.range(100).selectExpr("cast(id as string) as sensor", "id as celsius")

    hot = transform(rows)
    cold = transform(rows.limit(0))

    assert hot.count() == 39
    assert cold.count() == 0
    assert not spark.catalog.tableExists("input")


@pytest.mark.spark
def test_a_program_in_a_named_window_of_the_sql_is_refused(
    spark: "SparkSession", tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    program = f"(select transform(x) using 'touch {mark}; cat' as (y int) from values (1) as u(x))"
    transform = sql_transform(
        f"select sum(id) over w as s from input window w as (order by {program})", "here"
    )

    for _ in range(2):  # with each batch
        with pytest.raises(PipelineDefinitionError, match=r"^here: transform … using \(it runs"):
            transform(spark.range(2)).collect()

    assert not mark.exists()


@pytest.mark.spark
def test_a_mistake_in_the_sql_is_one_sentence_with_its_place(spark: "SparkSession") -> None:
    rows = spark.range(1)

    with pytest.raises(PipelineDefinitionError, match=r"^here: there is no column nope.*line 1"):
        sql_transform("select nope from input", "here")(rows)
    with pytest.raises(PipelineDefinitionError, match=r"^here: Syntax error at or near.*line 1"):
        sql_transform("selec 1", "here")(rows)
