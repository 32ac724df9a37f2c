"""`transform` on real Spark: each format into each other, mapping, filter, keys, tombstones."""

import itertools
import json
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.decoders.records import records_of

from headrace.pipelines.decoders.avro_schema import avro_of
from headrace.pipelines.decoders.ddl import parse_ddl
from headrace.pipelines.definition import Pipeline, Source
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.shipped.transform import OPTIONS, pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "sensor string, celsius double, at timestamp, n int"
AVRO = json.dumps(avro_of(parse_ddl(SCHEMA)))
JSON = [
    b'{"sensor":"a\\t<&\\"\\\\\xc3\xa9","celsius":21.5,"at":"2026-01-01T12:00:00.000001Z","n":null}',
    b'{"sensor":"","celsius":-1.0,"at":"1969-12-31T23:59:59.000000Z","n":7}',
    None,
]
FORMATS = ("json", "tsv", "csv", "xml", "avro")


def made(options: dict[str, str]) -> Pipeline:
    source: Source = None  # type: ignore[assignment]
    return pipeline(options, source, ())


def transformed(
    spark: "SparkSession", options: dict[str, str], records: "DataFrame"
) -> "DataFrame":
    the_pipeline = made(options)
    decoded = the_pipeline.decoder.decode(records)
    if the_pipeline.decoder.can_fail:
        assert decoded.where("_error is not null").count() == 0
        decoded = decoded.drop("_error")
    return the_pipeline.transform(decoded)


def as_records(frame: "DataFrame") -> "DataFrame":
    """What a sink would have written, as a source reads it."""
    return frame.selectExpr(
        "key", "value", "'in' as topic", "0 as partition", "cast(0 as bigint) as offset",
        "timestamp", "0 as timestampType", "headers",
    )  # fmt: skip


def schema_of(format_name: str) -> str:
    return AVRO if format_name == "avro" else SCHEMA


@pytest.mark.spark
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pair if pair in (("tsv", "avro"), ("xml", "csv"))
        else pytest.param(*pair, marks=pytest.mark.slow)
        for pair in itertools.product(FORMATS, FORMATS)
    ],
)  # fmt: skip
def test_values_survive_the_way_through_two_formats(
    spark: "SparkSession", first: str, second: str
) -> None:
    frame = records_of(spark, JSON).coalesce(1)
    for source, target in (("json", first), (first, second), (second, "json")):
        options = {"format": source, "schema": schema_of(source), "to-format": target}
        frame = as_records(transformed(spark, options, frame))

    rows = sorted(frame.collect(), key=lambda row: bytes(row.key))

    assert [None if row.value is None else bytes(row.value) for row in rows] == JSON
    assert {row.timestamp for row in rows} == {datetime(2026, 1, 1)}
    assert all([tuple(each) for each in row.headers] == [("h", b"1")] for row in rows)


@pytest.mark.spark
def test_fields_are_mapped_filtered_and_keyed(spark: "SparkSession") -> None:
    options = {
        "schema": SCHEMA,
        "select": "sensor, celsius*1.8+32 as fahrenheit -- {a comment}",
        "where": "celsius > 0 or n = 9",
        "key": "n + 1",
    }
    values = [b'{"sensor":"a","celsius":10,"n":1}', b'{"celsius":-1}', None]

    frame = transformed(spark, options, records_of(spark, values))

    assert frame.columns == ["key", "value", "headers", "partition", "timestamp", "_record"]
    assert [kind for _, kind in frame.dtypes[:2]] == ["binary", "binary"]
    assert {(bytes(row.key), row.value and bytes(row.value)) for row in frame.collect()} == {
        (b"2", b'{"sensor":"a","fahrenheit":50.0}'),
        (b"k2", None),  # a tombstone is never filtered, and keeps its key
    }


@pytest.mark.spark
def test_a_star_selects_the_fields_only(spark: "SparkSession") -> None:
    frame = transformed(
        spark, {"schema": "a int", "select": "*, a + 1 as b"}, records_of(spark, [b'{"a":1}'])
    )

    assert [bytes(row.value) for row in frame.collect()] == [b'{"a":1,"b":2}']


@pytest.mark.spark
def test_raw_records_are_filtered_untouched(spark: "SparkSession") -> None:
    options = {"format": "raw", "where": "_record.offset = 1"}

    frame = transformed(spark, options, records_of(spark, [b"\xfe", b"\xff", None]))

    assert {row.value and bytes(row.value) for row in frame.collect()} == {b"\xff", None}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"select": "nope"}, r"select='nope': .*`nope` cannot be resolved"),
        ({"where": "n ="}, "where='n =': .*Syntax error"),
        ({"to-format": "raw"}, "to-format raw: wanted one column"),
    ],
)
def test_sql_that_makes_no_sense_is_told_in_one_line(
    spark: "SparkSession", options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PipelineDefinitionError, match=sentence) as caught:
        transformed(spark, {"schema": SCHEMA, **options}, records_of(spark, [b"{}"]))

    assert "\n" not in str(caught.value)


def test_every_option_has_a_line_of_help() -> None:
    assert all(option.help for option in OPTIONS)
    assert made({"schema": "a int"}).decoder.describe() == "JSON with a int"
