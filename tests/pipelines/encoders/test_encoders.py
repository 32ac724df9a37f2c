"""Rows as bytes, golden; and that what is written is read back by the decoder of the format."""

import json
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import TYPE_CHECKING

import fastavro
import pytest

from headrace.pipelines.decoders.avro_header import fingerprint
from headrace.pipelines.encoders import parse_encoder
from headrace.pipelines.encoders.avro import AvroEncoder
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "s string, n int, c double, at timestamp, d decimal(5,2), day date, bin binary, ok boolean"
NAMES = ["s", "n", "c", "at", "d", "day", "bin", "ok"]
FULL = (
    'a & "b"\t<x>\\, é',
    1,
    1.5,
    datetime(2026, 1, 1, 12, 0, 0, 123456),
    Decimal("1.50"),
    date(2026, 1, 1),
    b"hi",
    True,
)
EMPTY = ("", None, None, None, None, None, None, None)
GOLDEN = {
    "json": (
        r'{"s":"a & \"b\"\t<x>\\, é","n":1,"c":1.5,"at":"2026-01-01T12:00:00.123456Z","d":1.50,'
        '"day":"2026-01-01","bin":"aGk=","ok":true}',
        '{"s":"","n":null,"c":null,"at":null,"d":null,"day":null,"bin":null,"ok":null}',
    ),
    "tsv": (
        'a & "b"\\t<x>\\\\, é\t1\t1.5\t2026-01-01T12:00:00.123456Z\t1.50\t2026-01-01\taGk=\ttrue',
        "\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N",
    ),
    "csv": (
        '"a & ""b""\t<x>\\, é",1,1.5,2026-01-01T12:00:00.123456Z,1.50,2026-01-01,aGk=,true',
        '"",,,,,,,',
    ),
    "xml": (
        '<row><s>a &amp; "b"\t&lt;x>\\, é</s><n>1</n><c>1.5</c>'
        "<at>2026-01-01T12:00:00.123456Z</at><d>1.50</d><day>2026-01-01</day><bin>aGk=</bin>"
        "<ok>true</ok></row>",
        "<row><s></s></row>",
    ),
}


@pytest.fixture(scope="module")
def rows(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame([(0, *FULL), (1, *EMPTY)], f"number int, {SCHEMA}").coalesce(1)


def values(frame: "DataFrame") -> list[bytes]:
    return [bytes(row.value) for row in sorted(frame.collect(), key=lambda row: row.number)]


@pytest.mark.spark
@pytest.mark.parametrize("format_name", GOLDEN)
def test_a_row_becomes_these_bytes(rows: "DataFrame", format_name: str) -> None:
    encoded = parse_encoder(format_name, {}).encode(rows, NAMES)

    assert encoded.columns == ["number", "value"]
    assert [value.decode() for value in values(encoded)] == list(GOLDEN[format_name])


@pytest.mark.spark
def test_avro_has_a_schema_of_nullable_fields(rows: "DataFrame") -> None:
    encoder = AvroEncoder("single-object")

    full, empty = values(encoder.encode(rows, ["s", "n"]))

    schema = json.loads(encoder.schema_for(rows, ["s", "n"]))
    assert schema["fields"][1] == {"name": "n", "type": ["null", "int"], "default": None}
    assert full[:10] == b"\xc3\x01" + fingerprint(schema)
    read = fastavro.schemaless_reader(BytesIO(full[10:]), fastavro.parse_schema(schema), None)
    assert read == {"s": FULL[0], "n": 1}
    assert empty[10:] == b"\x02\x00\x00"


@pytest.mark.spark
def test_avro_may_be_written_with_a_schema_of_the_users(rows: "DataFrame") -> None:
    text = '{"type":"record","name":"x","fields":[{"name":"n","type":["int","null"]}]}'
    options = {"to-schema": text, "to-avro-header": "confluent", "to-schema-id": "7"}

    full, empty = values(parse_encoder("avro", options).encode(rows, ["n"]))

    assert full == b"\0\0\0\0\7\0\2"
    assert empty == b"\0\0\0\0\7\2"


@pytest.mark.spark
def test_what_the_schema_wants_must_be_among_the_columns(rows: "DataFrame") -> None:
    text = '{"type":"record","name":"x","fields":[{"name":"m","type":"int"}]}'

    with pytest.raises(PipelineDefinitionError, match="no column is called m; there are s, n"):
        parse_encoder("avro", {"to-schema": text}).encode(rows, ["s", "n"])


@pytest.mark.spark
@pytest.mark.parametrize("format_name", ["json", "avro", "text"])
def test_a_row_may_be_left_without_a_value(rows: "DataFrame", format_name: str) -> None:
    marked = rows.selectExpr("number", "s", "number = 1 as skip")

    encoded = parse_encoder(format_name, {}).encode(marked, ["s"], null_where="skip")

    assert {row.number: row.value is None for row in encoded.collect()} == {0: False, 1: True}


@pytest.mark.spark
def test_text_and_raw_are_one_column(rows: "DataFrame") -> None:
    full = rows.where("n = 1")
    (text,) = values(parse_encoder("text", {}).encode(full.select("number", "n"), ["n"]))
    assert text == b"1"
    (raw,) = values(parse_encoder("raw", {}).encode(full.select("number", "bin"), ["bin"]))
    assert raw == b"hi"
    with pytest.raises(PipelineDefinitionError, match="wanted one column, got s, n"):
        parse_encoder("raw", {}).encode(rows, ["s", "n"])


@pytest.mark.parametrize(
    ("format_name", "options", "sentence"),
    [
        ("yaml", {}, "to-format 'yaml': there is no such format"),
        ("tsv", {"to-separator": "\\"}, "separator"),
        ("xml", {"to-row-tag": "<"}, "row-tag '<'"),
        ("avro", {"to-avro-header": "x"}, "avro-header 'x'"),
        ("avro", {"to-schema-id": "-1"}, "to-schema-id '-1'"),
    ],
)
def test_what_makes_no_encoder_is_told(
    format_name: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PipelineDefinitionError, match=sentence):
        parse_encoder(format_name, options)
