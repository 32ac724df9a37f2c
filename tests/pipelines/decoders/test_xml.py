"""Elements, and what is refused that Spark's reader would take."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.decoders.records import decode

from headrace.pipelines.decoders import Xml
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ELEMENTS = Xml("s string, c double, t timestamp, st struct<x:int>, arr array<int>, _a string")
GOOD: dict[bytes, dict[str, Any]] = {
    b"<row><s>a &amp; b </s><c>1.5</c></row>": {"s": "a & b ", "c": 1.5},
    b"<?xml version='1.0'?>\n<row>\n  <st>\n    <x>1</x>\n  </st>\n</row>\n": {"st": {"x": 1}},
    b'<?xml version="1.0" encoding="utf-8"?><row><s>\xc3\xa9</s></row>': {"s": "é"},
    b"<row><arr>1</arr><arr>2</arr></row>": {"arr": [1, 2]},
    b"<row a='7'/>": {"_a": "7"},
    b"<row/>": {},
    b"<row><s/><c/></row>": {"s": ""},
    b"<row><t>1700000000000</t></row>": {"t": datetime(2023, 11, 14, 22, 13, 20)},
    b"<row><t>2026-01-01T00:00:00Z</t></row>": {"t": datetime(2026, 1, 1)},
}
BAD = {
    b"not xml": "not XML: syntax error: line 1, column 0",
    b"": "the value is empty",
    b"<row><s>a</s>": "not XML: no element found: line 1, column 13",
    b"<other><s>a</s></other>": "wanted <row>, got <other>",
    b"<row><s>a</s></row> x": "not XML: junk after document element: line 1, column 20",
    b"<row><s>a</s></row><row/>": "not XML: junk after document element: line 1, column 19",
    b"<row><c>hot</c></row>": 'field c: wanted double, got "hot"',
    b"<row><c>1,5</c></row>": 'field c: wanted double, got "1,5"',
    b"<!DOCTYPE r [<!ENTITY e SYSTEM 'file:///etc/hostname'>]><row><s>&e;</s></row>": (
        "a document type is not read"
    ),
    b"<row><s>\xff</s></row>": "not UTF-8: byte 0xff at position 8",
    b"<row><s>a</s><c>1</c><s>b</s></row>": (
        "field s: its element is there 2 times; only an array is"
    ),
    b"<row><st/><st/></row>": "field st: its element is there 2 times; only an array is",
    b"<row><c>1e999</c></row>": 'field c: wanted double, got "1e999"',
    b"<?xml version='1.0' encoding='ISO-8859-1'?><row><s>\xc3\xa9</s></row>": (
        "it says that it is ISO-8859-1, and only UTF-8 is read"
    ),
}


@pytest.mark.spark
def test_elements_are_decoded_or_bad_as_documented(spark: "SparkSession") -> None:
    values = [*GOOD, *BAD, None]

    *decoded, tombstone = decode(spark, ELEMENTS, values)

    by_value = dict(zip(values, decoded, strict=False))
    assert {value: by_value[value].fields for value in GOOD} == GOOD
    assert [value for value in GOOD if by_value[value].error] == []
    assert [value for value in BAD if not by_value[value].error] == []
    assert tombstone == ({}, None, True)


@pytest.mark.parametrize(("value", "reason"), BAD.items())
def test_a_bad_element_is_explained(value: bytes, reason: str) -> None:
    assert ELEMENTS.explain(value) == reason


def test_a_row_tag_is_a_name() -> None:
    with pytest.raises(PipelineDefinitionError, match="row-tag 'a b'"):
        Xml("s string", "a b")
