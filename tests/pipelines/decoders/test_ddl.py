"""The reader of schemas says what Spark's own says."""

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.pipelines.decoders.ddl import (
    Array,
    Atom,
    Decimal,
    Map,
    SchemaField,
    Struct,
    Type,
    parse_ddl,
)
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATOMS = (
    "string", "boolean", "tinyint", "BYTE", "smallint", "short", "int", "Integer", "bigint", "long",
    "float", "real", "double", "date", "timestamp", "timestamp_ltz", "timestamp_ntz", "binary",
    "decimal", "dec(7)", "numeric(38,10)",
)  # fmt: skip
NAMES = st.text("abcxyz_09", min_size=1, max_size=5).filter(lambda name: not name[0].isdecimal())
PLAIN = re.compile(r"[a-z_]\w*", re.ASCII)
ODD_NAMES = st.text("a `é.:,<>'", min_size=1, max_size=4)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def fields(types: st.SearchStrategy[str], colon: str) -> st.SearchStrategy[str]:
    field = st.tuples(
        NAMES | ODD_NAMES,
        types,
        st.sampled_from(["", "", " not null", " NOT NULL comment 'it''s, <x>'", " comment 'c'"]),
    )
    lists = st.lists(field, min_size=1, max_size=4, unique_by=lambda each: each[0].lower())
    return lists.map(
        lambda several: ", ".join(
            f"{name if PLAIN.fullmatch(name) else quoted(name)}{colon}{kind}{end}"
            for name, kind, end in several
        )
    )


TYPES = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        inner.map(lambda kind: f"array<{kind}>"),
        inner.map(lambda kind: f"Map<string, {kind}>"),
        fields(inner, ":").map(lambda text: f"struct<{text}>"),
    ),
    max_leaves=5,
)


def as_json(fields: tuple[SchemaField, ...]) -> object:
    """What Spark's `jsonValue` would be, without comments."""
    return {
        "type": "struct",
        "fields": [
            {"name": each.name, "type": type_as_json(each.type), "nullable": not each.is_required}
            for each in fields
        ],
    }


def type_as_json(kind: Type) -> object:
    match kind:
        case Array(element):
            return {"type": "array", "elementType": type_as_json(element), "containsNull": True}
        case Map(key, value):
            return {
                "type": "map",
                "keyType": type_as_json(key),
                "valueType": type_as_json(value),
                "valueContainsNull": True,
            }
        case Struct(fields):
            return as_json(fields)
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
    names = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
    return names.get(kind.name, kind.name)


def without_comments(schema: object) -> object:
    if isinstance(schema, list):
        return [without_comments(each) for each in schema]
    if isinstance(schema, dict):
        return {
            name: without_comments(value) for name, value in schema.items() if name != "metadata"
        }
    return schema


@pytest.mark.spark
@settings(max_examples=80, deadline=None)
@given(text=fields(TYPES, " "))
@pytest.mark.slow
def test_it_means_what_spark_reads(spark: "SparkSession", text: str) -> None:
    from pyspark.sql.types import StructType

    assert as_json(parse_ddl(text)) == without_comments(StructType.fromDDL(text).jsonValue())


def test_what_was_read_can_be_written_and_read_again() -> None:
    fields = parse_ddl("a struct<`x y`:array<decimal(5,2)>, z:map<string,int> not null>, b int")

    assert parse_ddl(", ".join(each.ddl for each in fields)) == fields


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the end: wanted a field"),
        ("sensor", "the end: wanted a type"),
        ("sensor text", "'text' at character 8: wanted a type: string, boolean"),
        ("sensor string celsius double", "'celsius' at character 15: wanted a comma or the end"),
        ("a int,", "the end: wanted the name of a field"),
        ("a int not", "the end: wanted null behind not"),
        ("a array<int", "the end: wanted >"),
        ("a map<int>", "'>' at character 10: wanted ,"),
        ("a decimal(40,2)", "wanted a decimal of 1 to 38 digits"),
        ("a decimal(2,3)", "wanted a decimal of 1 to 38 digits"),
        ("a int, A string", "field a is there twice"),
        ("a int comment x", "'x' at character 15: wanted the comment in single quotes"),
        ("a int;", "';' at character 6: wanted a comma or the end"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(PipelineDefinitionError) as caught:
        parse_ddl(text)

    assert sentence in str(caught.value)


def test_a_field_is_its_name_its_type_and_whether_it_is_required() -> None:
    assert parse_ddl("sensor string not null, `c d` double") == (
        SchemaField("sensor", Atom("string"), is_required=True),
        SchemaField("c d", Atom("double")),
    )
