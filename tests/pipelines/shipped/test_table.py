"""`table`: a topic's records, as a table by key."""

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.client.bus import Bus
from headrace.pipelines.definition import ERROR_COLUMN, RECORD_SCHEMA, Pipeline, Run
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.shipped import table
from headrace.pipelines.shipped.table import KeyedDecoder
from headrace.pipelines.sinks.sql.table import SqlTable, from_uri
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spans import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SOURCE = TopicSource(topics=("sensor-readings.v1",))
SCHEMA = "sensor string, celsius double"


def records(
    spark: "SparkSession", *messages: tuple[bytes | None, bytes | None], start: int = 0
) -> "DataFrame":
    """Keys and values as a source gives them, at offsets from `start`."""
    rows = [
        (key, value, "sensor-readings.v1", 0, offset, AT, 0, None)
        for offset, (key, value) in enumerate(messages, start)
    ]
    return spark.createDataFrame(rows, RECORD_SCHEMA)


def build(uri: str, **options: str) -> Pipeline:
    return table.pipeline(options, SOURCE, (from_uri(uri, options),))


def run_batches(
    spark: "SparkSession", pipeline: Pipeline, batches: Sequence["DataFrame"]
) -> list[tuple[int, str]]:
    """Write the batches as a run would; what went to the dead letters, by offset and sentence."""
    run = Run(spark=spark, bus=Bus(), name="table", app_id="app")
    decoder = pipeline.decoder
    assert isinstance(decoder, KeyedDecoder)
    bad = []
    with contextlib.ExitStack() as closing:
        sinks = [sink.open(run) for sink in pipeline.sinks]
        for sink in sinks:
            closing.callback(sink.close)
        for batch_id, batch in enumerate(batches):
            carrying = decoder.decode_carrying(batch)
            for row in carrying.where(f"{ERROR_COLUMN} is not null").collect():
                value = row._headrace_carried.value
                value = None if value is None else bytes(value)
                sentence = decoder.explain_error(row._error, value) or decoder.explain(value)
                bad.append((row._record.offset, sentence))
            good = decoder.decode(batch).where(f"{ERROR_COLUMN} is null").drop(ERROR_COLUMN)
            for sink in sinks:
                sink.write(pipeline.transform(good), Batch(batch_id))
    return bad


def rows_of(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


@pytest.mark.spark
def test_values_set_rows_and_nulls_delete_them_by_the_messages_key(
    spark: "SparkSession", tmp_path: Path
) -> None:
    pipeline = build(f"sqlite:{tmp_path / 't.db'}", schema=SCHEMA)

    bad = run_batches(
        spark,
        pipeline,
        [
            records(
                spark,
                (b"a", b'{"sensor":"s1","celsius":1.5}'),
                (b"b", b'{"sensor":"s2"}'),
                (b"c", b"not json"),
                (None, b'{"sensor":"s3"}'),
                (b"\xff", b'{"sensor":"s4"}'),
                (None, None),
            ),
            records(spark, (b"a", b'{"celsius":2.5}'), (b"b", None), (b"z", None), start=6),
        ],
    )

    found = rows_of(tmp_path / "t.db", "SELECT * FROM sensor_readings_v1")
    assert found == [
        ("a", None, 2.5, "sensor-readings.v1", 0, 6, "2026-11-16 12:00:00.000000"),
    ]
    no_key = "the message has no key, by which the table finds its row"
    assert bad == [
        (2, "not JSON: Expecting value at character 1"),
        (3, no_key),
        (4, "the message's key is not UTF-8 text"),
        (5, no_key),
    ]


@pytest.mark.spark
def test_tsv_by_a_field(spark: "SparkSession", tmp_path: Path) -> None:
    pipeline = build(
        f"sqlite:{tmp_path / 't.db'}",
        format="tsv",
        schema="id int, name string",
        key="id",
        table="people",
        provenance="no",
    )

    bad = run_batches(
        spark,
        pipeline,
        [
            records(
                spark,
                (None, b"1\tAda"),
                (b"x", b"2\tBob"),
                (b"x", b"\tnobody"),
                (b"no number", None),
                (b"2", None),
                (None, b"1\tAda L."),
            )
        ],
    )

    assert rows_of(tmp_path / "t.db", "SELECT * FROM people") == [(1, "Ada L.")]
    assert bad == [
        (2, "a key field is null: id"),
        (3, "a null value deletes by the message's key, which is no value of id"),
    ]


@pytest.mark.spark
def test_a_key_that_is_too_long_for_mariadb_is_a_dead_letter(spark: "SparkSession") -> None:
    pipeline = build("mariadb://h/d", schema=SCHEMA)
    decoder = pipeline.decoder
    assert isinstance(decoder, KeyedDecoder)
    frame = records(spark, (b"k" * 700, b"{}"), (b"k" * 701, b"{}"))

    errors = [row._error for row in decoder.decode(frame).collect()]

    assert errors[0] is None
    assert decoder.explain_error(errors[1], b"{}") == (
        "the key is longer than the 700 characters the table's index takes"
    )


@pytest.mark.parametrize(
    ("options", "uri", "name", "key"),
    [
        ({}, "sqlite:f.db", "sensor_readings_v1", ("key",)),
        ({"key": "message"}, "sqlite:f.db", "sensor_readings_v1", ("key",)),
        ({"key": "sensor"}, "sqlite:f.db?table=t", "t", ("sensor",)),
        ({"table": "t"}, "sqlite:f.db?key=sensor,celsius", "t", ("sensor", "celsius")),
        ({"table": "t", "key": "message"}, "sqlite:f.db?table=u&key=sensor", "u", ("sensor",)),
    ],
)
def test_table_and_key_come_from_the_uri_the_options_or_the_topic(
    options: Mapping[str, str], uri: str, name: str, key: tuple[str, ...]
) -> None:
    sink = build(uri, schema=SCHEMA, **options).sinks[0]

    assert isinstance(sink, SqlTable)
    assert (sink.table, sink.key) == (name, key)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"schema": SCHEMA, "key": "senor"}, "key=senor: the schema has no such field; it has"),
        ({"schema": "key string"}, "the schema has a field key"),
        ({"format": "raw"}, "format raw has no fields for a table"),
        ({}, "needs a schema"),
    ],
)
def test_options_that_make_no_table_are_refused(options: Mapping[str, str], sentence: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=sentence):
        build("sqlite:f.db", **options)


def test_two_topics_need_a_name_for_the_table() -> None:
    source = TopicSource(topics=("a", "b"))

    with pytest.raises(PipelineDefinitionError, match="give --option table=NAME"):
        table.pipeline({"schema": SCHEMA}, source, (SqlTable("sqlite:f.db"),))
