"""Avro on Spark's workers: types, headers, and bytes that are none."""

import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pytest
from tests.pipelines.decoders.records import decode, records_of

from headrace.pipelines.decoders import Avro
from headrace.pipelines.decoders.avro_header import fingerprint, header_for
from headrace.pipelines.decoders.record_decoder import CARRIED_COLUMN
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def a_record(*fields: tuple[str, Any]) -> dict[str, Any]:
    entries = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "r", "namespace": "n", "fields": entries}


INNER = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "long"}]}
ALL_TYPES = a_record(
    ("s", "string"),
    ("n", ["null", "int"]),
    ("f", ["float", "null"]),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("us", {"type": "long", "logicalType": "timestamp-micros"}),
    ("d", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}),
    ("day", {"type": "int", "logicalType": "date"}),
    ("in", INNER),
    ("ins", {"type": "array", "items": "inner"}),
    ("m", {"type": "map", "values": ["null", "double"]}),
    ("e", {"type": "enum", "name": "e1", "symbols": ["A", "B"]}),
    ("fx", {"type": "fixed", "name": "f2", "size": 2}),
    ("u", {"type": "string", "logicalType": "uuid"}),
    ("tm", {"type": "int", "logicalType": "time-millis"}),
    ("lt", {"type": "long", "logicalType": "local-timestamp-micros"}),
)
ROW = {
    "s": "a",
    "n": None,
    "f": 1.5,
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "us": datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    "d": Decimal("1.50"),
    "day": date(2026, 1, 1),
    "in": {"x": 5},
    "ins": [{"x": 1}],
    "m": {"k": 1.5, "z": None},
    "e": "A",
    "fx": b"hi",
    "u": uuid.UUID(int=1),
    "tm": 36_000_000,
    "lt": datetime(2026, 1, 1),
}
DECODED = {name: value for name, value in ROW.items() if value is not None} | {
    "at": datetime(2026, 1, 1),
    "us": datetime(2026, 1, 1, 0, 0, 0, 1),
    "u": str(uuid.UUID(int=1)),
}


def written(schema: Any, row: dict[str, Any]) -> bytes:
    target = BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), row)
    return target.getvalue()


VALUE = written(ALL_TYPES, ROW)


@pytest.mark.spark
def test_all_types_are_read_and_bad_bytes_fail_no_task(spark: "SparkSession") -> None:
    decoder = Avro(json.dumps(ALL_TYPES))
    bad = [VALUE[:-3], VALUE + b"x", b"", b"\xff" * 20, b"\0"]

    good, *others, tombstone = decode(spark, decoder, [VALUE, *bad, None])

    assert good == (DECODED, None, False)
    assert [each.error for each in others] == [decoder.explain(value) for value in bad]
    assert tombstone == ({}, None, True)
    assert decoder.explain(VALUE + b"x").endswith(f"1 of its {len(VALUE) + 1} bytes are left over")


@pytest.mark.spark
def test_headers_are_checked_and_skipped(spark: "SparkSession") -> None:
    schema = a_record(("s", "string"))
    value, text = written(schema, {"s": "a"}), json.dumps(schema)
    single = header_for("single-object", schema)

    registry = decode(spark, Avro(text, "confluent"), [b"\0\0\0\0\7" + value, value, b"\0"])
    objects = decode(
        spark,
        Avro(text, "single-object"),
        [single + value, value, b"\xc3\x01" + b"\0" * 8 + value, b"\xc3\x01"],
    )

    assert registry[0] == objects[0] == ({"s": "a"}, None, False)
    assert [each.error is None for each in registry] == [True, False, False]
    assert "written with another schema" in (objects[2].error or "")
    assert all("no single-object header" in (objects[index].error or "") for index in (1, 3))


@pytest.mark.spark
def test_a_value_of_another_schema_id_is_bad_where_the_id_is_known(spark: "SparkSession") -> None:
    schema = a_record(("s", "string"))
    value, decoder = written(schema, {"s": "a"}), Avro(json.dumps(schema), "confluent", 7)

    own, other = decode(spark, decoder, [b"\0\0\0\0\7" + value, b"\0\0\1\0\7" + value])

    assert own == ({"s": "a"}, None, False)
    assert other.error == "written with another schema: its number is 65543, wanted 7"


def test_several_schema_ids_are_told_where_none_is_known() -> None:
    text = json.dumps(a_record(("s", "string")))
    sample = [b"\0\0\0\0\7\0", None, b"\0\0\0\0\x09\0", b"\0\0\0\0\7\0", b"x"]

    told = Avro(text, "confluent").drift(sample)

    assert [sentence[:44] for sentence in told] == ["values have the schema ids 7, 9 and all are "]
    assert Avro(text, "confluent").drift(sample[:2]) == []
    assert Avro(text, "confluent", 7).drift(sample) == []


def test_a_schema_id_goes_with_a_registrys_header() -> None:
    with pytest.raises(PipelineDefinitionError, match="write avro-header=confluent"):
        Avro(json.dumps(a_record(("s", "string"))), "single-object", 7)


def test_the_fingerprint_is_that_of_the_specification() -> None:
    # 0x7275d51a3f395c8f is Avro's own example for "int"; it stands with the low byte first.
    assert fingerprint("int").hex() == "8f5c393f1ad57572"


@pytest.mark.spark
def test_the_bytes_can_be_carried_along(spark: "SparkSession") -> None:
    decoder = Avro(json.dumps(a_record(("s", "string"))))

    (row,) = decoder.decode_carrying(records_of(spark, [b"\xff"])).collect()

    assert bytes(row[CARRIED_COLUMN].value) == b"\xff"


@pytest.mark.spark
def test_a_decimal_that_does_not_fit_spoils_its_row_only(spark: "SparkSession") -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    wide = a_record(("d", {**kind, "precision": 20}))
    values = [written(wide, {"d": Decimal(text)}) for text in ("1.00", "123456789.00")]

    good, bad = decode(spark, Avro(json.dumps(a_record(("d", kind)))), values)

    assert good.fields == {"d": Decimal("1.00")}
    assert bad.error


def test_a_schema_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r.avsc"
    path.write_text(json.dumps(a_record(("s", "string"))))

    assert Avro(str(path)).describe() == "Avro with s string"


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("nowhere.avsc", "Avro schema nowhere.avsc: No such file or directory"),
        ("{", "Avro schema is not JSON"),
        ('"int"', "wanted a record at the top"),
        (json.dumps(a_record(("u", ["int", "string"]))), "field u: a union other than"),
        (json.dumps(a_record(("u", "nope"))), "field u: there is no type nope"),
        (json.dumps(a_record(("u", ["null", "n.r"]))), "field u: n.r holds itself"),
        (json.dumps(a_record()), "record n.r has no fields"),
    ],
)
def test_a_schema_that_makes_no_frame_is_refused(schema: str, sentence: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=sentence):
        Avro(schema)
