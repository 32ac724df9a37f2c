"""Cells, their escapes, and lines that have too many of them."""

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.decoders.records import decode

from headrace.pipelines.decoders import Tsv
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = Tsv("s string, n int, at timestamp, b boolean, d decimal(5,2), bin binary")
NUMBERS = Tsv("c double, f float, day date")
NUMBERS_GOOD: dict[bytes, dict[str, Any]] = {
    b"1.5\t-2e3\t2026-01-01": {"c": 1.5, "f": -2000.0, "day": date(2026, 1, 1)},
    b" 7 \t.5\t2026-01-01T10:00Z": {"c": 7.0, "f": 0.5, "day": date(2026, 1, 1)},
    b"Infinity\t-inf\t": {"c": math.inf, "f": -math.inf},  # where it is written so
}
NUMBERS_BAD = {
    b"1e999\t\t": 'field c: wanted double, got "1e999"',
    b"\t1e300\t": 'field f: wanted float, got "1e300"',
    b"5F\t\t": 'field c: wanted double, got "5F"',  # Java's float, and half of all hexadecimals
    b"\t2d\t": 'field f: wanted float, got "2d"',
    b"0x1p3\t\t": 'field c: wanted double, got "0x1p3"',
    b"\t\t2026-01-01Tx": 'field day: wanted date, got "2026-01-01Tx"',
    b"\t\t0000-01-01": 'field day: wanted date, got "0000-01-01"',
    b"\xef\xbb\xbf1\t\t": "it begins with a byte order mark",
}
GOOD: dict[bytes, dict[str, Any]] = {
    b"a\t1\t2026-01-01T00:00:00Z\ttrue\t1.5\taGk=": {
        "s": "a", "n": 1, "at": datetime(2026, 1, 1), "b": True, "d": Decimal("1.50"), "bin": b"hi",
    },
    b"a\t 7 \t1700000000000\tno\t\t": {
        "s": "a", "n": 7, "at": datetime(2023, 11, 14, 22, 13, 20), "b": False, "bin": b"",
    },
    rb"a\tb\\t\n\q" + b"\t\t\t\t\t": {"s": "a\tb\\t\n\\q", "bin": b""},
    b"\t".join([rb"\N"] * 6): {},
}  # fmt: skip
BAD = {
    b"a\tx\t\t\t\t": 'field n: wanted int, got "x"',
    b"a\t1.5\t\t\t\t": 'field n: wanted int, got "1.5"',
    b"a\t1\tx\t\t\t": 'field at: wanted timestamp, got "x"',
    b"a\t1\t\tmaybe\t\t": 'field b: wanted boolean, got "maybe"',
    b"a\t1\t\t\t12345\t": 'field d: wanted decimal(5,2), got "12345"',
    b"a\t1\t\t\t\t@@": 'field bin: wanted binary, got "@@"',
    b"a\t1\t\t": "4 columns, wanted 6",
    b"a\t1\t\t\t\t\t": "7 columns, wanted 6",
    b"": "1 column, wanted 6",
    b"\xff\t1\t\t\t\t": "not UTF-8: byte 0xff at position 0",
}
CSV = Tsv("s string not null, n int", ",", is_quoted=True)
CSV_GOOD: dict[bytes, dict[str, Any]] = {
    b"a,1": {"s": "a", "n": 1},
    b'"a,b",2': {"s": "a,b", "n": 2},
    b'"say ""hi""",3': {"s": 'say "hi"', "n": 3},
    b'"",4': {"s": "", "n": 4},
    b'"two\nlines",5': {"s": "two\nlines", "n": 5},
    b"a,": {"s": "a"},
    b"a,1\n": {"s": "a", "n": 1},  # a line with its end
    b'"a\n",1\r\n': {"s": "a\n", "n": 1},
    b'5" pipe,1': {"s": '5" pipe', "n": 1},
    b'"' + b'""x' * 20_000 + b'",1': {"s": '"x' * 20_000, "n": 1},
    b"\0,1": {"s": "\0", "n": 1},
}
CSV_BAD = {
    b",4": "field s is missing",
    b"a": "1 column, wanted 2",
    b"a,1,2": "3 columns, wanted 2",
    b"a,x": 'field n: wanted int, got "x"',
    b'"open,7': "column 1: its quote is never closed",
    b'a,"1': "column 2: its quote is never closed",
    b'a,"': "column 2: its quote is never closed",
    b'"a"",1': "column 1: its quote is never closed",
    b'"a"b,1': "column 1: there is text behind its closing quote",
    b'"a" ,1': "column 1: there is text behind its closing quote",
    b"a\nb,1": "column 1: a line end outside of quotes",
    b"a,1\nb,2": "column 2: a line end outside of quotes",
    b"a,1\n\n": "column 2: a line end outside of quotes",
    b"\xef\xbb\xbfa,1": "it begins with a byte order mark",
    b"": "0 columns, wanted 2",
}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("decoder", "good", "bad"),
    [(LINES, GOOD, BAD), (NUMBERS, NUMBERS_GOOD, NUMBERS_BAD), (CSV, CSV_GOOD, CSV_BAD)],
    ids=["tsv", "numbers", "csv"],
)
def test_lines_are_decoded_or_bad_as_documented(
    spark: "SparkSession", decoder: Tsv, good: dict[bytes, Any], bad: dict[bytes, str]
) -> None:
    values = [*good, *bad, None]

    *decoded, tombstone = decode(spark, decoder, values)

    by_value = dict(zip(values, decoded, strict=False))
    assert {value: by_value[value].fields for value in good} == good
    assert [value for value in good if by_value[value].error] == []
    assert [value for value in bad if not by_value[value].error] == []
    assert tombstone == ({}, None, True)


@pytest.mark.parametrize(
    ("decoder", "value", "reason"),
    [(LINES, *each) for each in BAD.items()]
    + [(NUMBERS, *each) for each in NUMBERS_BAD.items()]
    + [(CSV, *each) for each in CSV_BAD.items()],
)
def test_a_bad_line_is_explained(decoder: Tsv, value: bytes, reason: str) -> None:
    assert decoder.explain(value) == reason


@pytest.mark.spark
@pytest.mark.parametrize("separator", ["|", ".", "::"])
def test_a_separator_means_itself(spark: "SparkSession", separator: str) -> None:
    (row,) = decode(spark, Tsv("a string, b int", separator), [f"x{separator}1".encode()])

    assert row == ({"a": "x", "b": 1}, None, False)


@pytest.mark.parametrize("separator", ["", "\\", "\n"])
def test_what_cannot_separate_is_refused(separator: str) -> None:
    with pytest.raises(PipelineDefinitionError, match="separator"):
        Tsv("a string", separator)


def test_a_cell_holds_no_struct() -> None:
    with pytest.raises(PipelineDefinitionError, match="field a: a cell holds no struct<x:int>"):
        Tsv("a struct<x:int>")
