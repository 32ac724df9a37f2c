"""What becomes of each odd JSON value; docs/pipelines/formats.md promises it."""

import pickle
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.decoders.records import decode, records_of

from headrace.pipelines.decoders import Json
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY_TYPES = Json(
    "s string, c double, n int, l bigint, t timestamp, b boolean, st struct<x:int,at:timestamp>, "
    "arr array<int>, d decimal(5,2), dt date, bin binary, f float, m map<string,int>, y tinyint, "
    "ats array<timestamp>, must struct<x:int not null>, ntz timestamp_ntz, fs array<double>"
)
# Each value that can be decoded, with its fields that are not null.
GOOD: dict[bytes, dict[str, Any]] = {
    b'{"s":"a","c":1.5,"n":3,"b":true}': {"s": "a", "c": 1.5, "n": 3, "b": True},
    b"{}": {},
    b'{"s":null}': {},
    b'{"S":"case matters"}': {},
    b'{"unknown":1}': {},
    b'{"s":"a","s":"b"}': {"s": "b"},  # the last of two keys
    b'{"s":5}': {"s": "5"},  # a string field takes any JSON
    b'{"s":{"q": 1}}': {"s": '{"q":1}'},
    b'{"s":"x}y"}': {"s": "x}y"},
    b'{"c":5}': {"c": 5.0},
    b'{"c":1e-999}': {"c": 0.0},  # rounded
    rb'{"s":"\ud83d\ude00"}': {"s": "\U0001f600"},
    rb'{"s":"\\ud800"}': {"s": r"\ud800"},  # a backslash and five letters
    rb'{"s":"\\\ud83d\uDE00\\"}': {"s": "\\\U0001f600\\"},
    b'{"ntz":"2026-01-01T10:00"}': {"ntz": datetime(2026, 1, 1, 10)},
    b'{"t":"2026-01-01T00:00:00.123456+02:00"}': {"t": datetime(2025, 12, 31, 22, 0, 0, 123456)},
    b'{"t":"2026-01-01"}': {"t": datetime(2026, 1, 1)},
    b'{"t":1700000000000}': {"t": datetime(2023, 11, 14, 22, 13, 20)},
    b'{"t":"1700000000000"}': {"t": datetime(2023, 11, 14, 22, 13, 20)},
    b'{"dt":"2026-01-01T10:00:00Z"}': {"dt": date(2026, 1, 1)},
    b'{"bin":"aGVsbG8="}': {"bin": b"hello"},
    b'{"d":"1.23"}': {"d": Decimal("1.23")},
    b'{"d":1.239}': {"d": Decimal("1.24")},  # rounded
    b'{"arr":[1,null]}': {"arr": [1, None]},
    b'{"m":{"a":1}}': {"m": {"a": 1}},
    b'{"st":{"at":1700000000000}}': {"st": {"x": None, "at": datetime(2023, 11, 14, 22, 13, 20)}},
    b'{"ats":["2026-01-01T00:00:00Z"]}': {"ats": [datetime(2026, 1, 1)]},
    b'{"s":"a"} \n': {"s": "a"},
}
# Each value that cannot, with the reason people are given.
BAD = {
    b"not json": "not JSON: Expecting value at character 1",
    b'{"s":"a"': "not JSON: Expecting ',' delimiter at character 9",
    b'{"s":"a",}': "not JSON: Expecting property name enclosed in double quotes at character 10",
    b"{'s':'a'}": "not JSON: Expecting property name enclosed in double quotes at character 2",
    b'{"s":"a\tb"}': "not JSON: Invalid control character at character 8",
    b'{"c":01}': "not JSON: Expecting ',' delimiter at character 7",
    b'{"c":NaN}': "not JSON: NaN is no number in JSON",
    b'{"s":"a"} trailing': "not JSON: Extra data at character 11",
    b'{"s":"a"}{"s":"b"}': "not JSON: Extra data at character 10",
    b'{"s":"a"},{"s":"b"}': "not JSON: Extra data at character 10",
    b'{"s":"a"}] x': "not JSON: Extra data at character 10",
    b'{"s":"a"},{}]} x': "not JSON: Extra data at character 10",
    b'{"st":{"x":1}} x': "not JSON: Extra data at character 16",
    b"": "the value is empty",
    b"  ": "not JSON: Expecting value at character 3",
    b"null": "wanted a JSON object, got null",
    b"5": "wanted a JSON object, got a number",
    b'"x"': "wanted a JSON object, got a string",
    b'[{"s":"a"}]': "wanted a JSON object, got an array",
    b"\xff\xfe": "not UTF-8: byte 0xff at position 0",
    b'{"s":"\xff"}': "not UTF-8: byte 0xff at position 6",
    b'{"s":"a","c":"hot"}': 'field c: wanted double, got "hot"',
    b'{"c":"NaN"}': 'field c: wanted double, got "NaN"',
    b'{"n":"3"}': 'field n: wanted int, got "3"',
    b'{"n":1.0}': "field n: wanted int, got 1.0",
    b'{"n":99999999999}': "field n: wanted int, got 99999999999",
    b'{"l":9223372036854775808}': "field l: wanted bigint, got 9223372036854775808",
    b'{"y":300}': "field y: wanted tinyint, got 300",
    b'{"c":1e999}': "field c: wanted double, got Infinity",
    b'{"c":-1e999}': "field c: wanted double, got -Infinity",
    b'{"f":1e300}': "field f: wanted float, got 1e+300",
    b'{"fs":[1,1e999]}': "field fs[1]: wanted double, got Infinity",
    rb'{"s":"\ud800"}': r"half a character, \ud800, at character 7",
    rb'{"s":"x\uDFFFx"}': r"half a character, \uDFFF, at character 8",
    rb'{"s":"\ud83d\ud83d\ude00"}': r"half a character, \ud83d, at character 7",
    rb'{"s":"\ud83d\ude00\ude00"}': r"half a character, \ude00, at character 19",
    rb'{"s":"\ud83d\\\ude00"}': r"half a character, \ud83d, at character 7",
    rb'{"m":{"\ud800":1}}': r"half a character, \ud800, at character 8",
    rb'{"\udc00":1}': r"half a character, \udc00, at character 3",
    b'{"dt":"12026-01-01"}': 'field dt: wanted date, got "12026-01-01"',
    b'{"dt":"0000-01-01"}': 'field dt: wanted date, got "0000-01-01"',
    b'{"dt":"2026"}': 'field dt: wanted date, got "2026"',
    b'{"dt":"2026-01-01T99:99"}': 'field dt: wanted date, got "2026-01-01T99:99"',
    b'{"t":"0000-01-01"}': 'field t: wanted timestamp, got "0000-01-01"',
    b'{"t":"9999-12-31T23:59:59-05:00"}': (
        'field t: wanted timestamp, got "9999-12-31T23:59:59-05:00"'
    ),
    b'{"ntz":"2026-01-01T10:00+02:00"}': (
        'field ntz: wanted timestamp_ntz, got "2026-01-01T10:00+02:00"'
    ),
    b'{"d":123456}': "field d: wanted decimal(5,2), got 123456",
    b'{"b":"true"}': 'field b: wanted boolean, got "true"',
    b'{"b":1}': "field b: wanted boolean, got 1",
    b'{"t":"garbage"}': 'field t: wanted timestamp, got "garbage"',
    b'{"t":"10:00"}': 'field t: wanted timestamp, got "10:00"',
    b'{"t":99999999999999999}': "field t: wanted timestamp, got 99999999999999999",
    b'{"dt":5}': "field dt: wanted date, got 5",
    b'{"bin":"@@"}': 'field bin: wanted binary, got "@@"',
    b'{"st":5}': "field st: wanted struct<x:int,at:timestamp>, got 5",
    b'{"st":{"x":"q"}}': 'field st.x: wanted int, got "q"',
    b'{"st":{"at":"q"}}': 'field st.at: wanted timestamp, got "q"',
    b'{"arr":[1,"x"]}': 'field arr[1]: wanted int, got "x"',
    b'{"ats":["q"]}': 'field ats[0]: wanted timestamp, got "q"',
    b'{"m":{"a":"q"}}': 'field m.a: wanted int, got "q"',
    b'{"must":{}}': "field must.x is missing",
}


@pytest.mark.spark
def test_odd_values_are_decoded_or_bad_as_documented(spark: "SparkSession") -> None:
    values = [*GOOD, *BAD]

    decoded = dict(zip(values, decode(spark, MANY_TYPES, values), strict=True))

    assert {value: decoded[value].fields for value in GOOD} == GOOD
    assert [value for value in GOOD if decoded[value].error] == []
    assert [value for value in BAD if not decoded[value].error] == []


@pytest.mark.parametrize(("value", "reason"), BAD.items())
def test_a_bad_value_is_explained(value: bytes, reason: str) -> None:
    assert MANY_TYPES.explain(value) == reason


@pytest.mark.spark
def test_a_required_field_must_be_there_but_a_tombstone_has_none(spark: "SparkSession") -> None:
    decoder = Json("sensor string not null, celsius double")
    values = [b'{"sensor":"a"}', b'{"celsius":1}', b'{"sensor":null}', None]

    good, missing, null, tombstone = decode(spark, decoder, values)

    assert good.error is None
    assert missing.error
    assert null.error
    assert tombstone == ({}, None, True)
    assert decoder.explain(values[1]) == "field sensor is missing"
    assert decoder.explain(values[2]) == "field sensor is null"


@pytest.mark.spark
def test_a_row_knows_its_record(spark: "SparkSession") -> None:
    (row,) = Json("s string").decode(records_of(spark, [b"{}"])).collect()

    record = row["_record"].asDict(recursive=True)
    assert record == {
        "key": b"k0",
        "topic": "in",
        "partition": 0,
        "offset": 0,
        "timestamp": datetime(2026, 1, 1),
        "headers": [{"key": "h", "value": b"1"}],
        "is_tombstone": False,
    }


@pytest.mark.spark
def test_names_that_sql_would_misread_work(spark: "SparkSession") -> None:
    decoder = Json("`a b` int, `select` timestamp, `it's` struct<`x.y`:timestamp>")

    (row,) = decode(spark, decoder, [b'{"a b":1,"select":0,"it\'s":{"x.y":0}}'])

    epoch = datetime(1970, 1, 1)
    assert row == ({"a b": 1, "select": epoch, "it's": {"x.y": epoch}}, None, False)


@pytest.mark.parametrize("name", ["_record", "_error", "_headrace_text"])
def test_a_field_named_like_a_column_of_ours_is_refused(name: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=f"field {name}"):
        Json(f"{name} string")


def test_a_decoder_travels_to_the_workers() -> None:
    assert pickle.loads(pickle.dumps(MANY_TYPES)).explain(b"5") == MANY_TYPES.explain(b"5")
