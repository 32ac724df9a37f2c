from typing import TYPE_CHECKING

import pytest

from headrace.pipelines.sinks.lake.widening import ClashError, TypeChange, changes, united

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Spark parses types in Java.
pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def schema(ddl: str) -> "StructType":
    from pyspark.sql.types import StructType

    return StructType.fromDDL(ddl)


# What the lake has, what comes, and what both are read as.
LOSSLESS = [
    ("tinyint", "bigint", "bigint"),
    ("int", "smallint", "int"),
    ("float", "double", "double"),
    ("int", "double", "double"),
    ("int", "float", "double"),
    ("decimal(5,2)", "decimal(12,3)", "decimal(12,3)"),
    ("decimal(10,0)", "decimal(10,8)", "decimal(18,8)"),
    ("int", "decimal(5,2)", "decimal(12,2)"),
    ("bigint", "decimal(5,2)", "decimal(22,2)"),
    ("date", "timestamp_ntz", "timestamp_ntz"),
    ("array<int>", "array<bigint>", "array<bigint>"),
    ("map<string,int>", "map<string,double>", "map<string,double>"),
    ("struct<a:int,b:string>", "struct<c:int,a:bigint>", "struct<a:bigint,b:string,c:int>"),
    ("array<struct<a:int>>", "array<struct<b:int>>", "array<struct<a:int,b:int>>"),
]
LOSSY = [
    ("int", "string"),
    ("string", "int"),
    ("string", "binary"),
    ("bigint", "double"),
    ("bigint", "float"),
    ("decimal(5,2)", "double"),
    ("decimal(38,0)", "decimal(38,10)"),
    ("boolean", "int"),
    ("date", "timestamp"),
    ("timestamp", "timestamp_ntz"),
    ("int", "array<int>"),
    ("string", "struct<a:int>"),
]


@pytest.mark.parametrize(("has", "comes", "read"), LOSSLESS)
def test_types_that_one_holds_without_loss_are_widened_in_either_order(
    has: str, comes: str, read: str
) -> None:
    found = united([schema(f"x {has}"), schema(f"x {comes}")])

    assert found["x"].dataType.simpleString() == read
    back = united([schema(f"x {comes}"), schema(f"x {has}")])
    assert united([schema(f"x {read}"), back]) == found


@pytest.mark.parametrize(("has", "comes"), LOSSY)
def test_types_that_none_holds_without_loss_are_refused_with_both_named(
    has: str, comes: str
) -> None:
    with pytest.raises(ClashError) as caught:
        united([schema(f"x {has}"), schema(f"x {comes}")])

    assert f"column x of the lake is {has} and that of the rows {comes}" in str(caught.value)
    assert f"cast it to {has} in the transform, or write to a new lake" in str(caught.value)


def test_a_clash_deep_in_a_column_is_named_by_its_path() -> None:
    with pytest.raises(ClashError, match=r"column s\.list\[\]\.a of the lake is int"):
        united(
            [
                schema("s struct<list:array<struct<a:int>>>"),
                schema("s struct<list:array<struct<a:string>>>"),
            ]
        )


# Two fields that are one to Spark, and what they are called.
TWINS = [
    ("x int, X int", "x and X"),
    ("s struct<x:int,X:int>", r"s\.x and s\.X"),
    ("s struct<x:int,y:string,X:string>", r"s\.x and s\.X"),
    ("l array<struct<a:int,A:int>>", r"l\[\]\.a and l\[\]\.A"),
    ("m map<string,struct<a:int,A:int>>", r"m\[\]\.a and m\[\]\.A"),
    ("m map<struct<a:int,A:int>,int>", r"m \(keys\)\.a and m \(keys\)\.A"),
    ("s struct<t:array<array<struct<`ä`:int,`Ä`:int>>>>", r"s\.t\[\]\[\]\.ä and s\.t\[\]\[\]\.Ä"),
]


@pytest.mark.parametrize(("comes", "names"), TWINS)
@pytest.mark.parametrize("has", ["", "x int", "s void, l void, m void"])
def test_two_fields_that_are_one_to_spark_are_refused_at_any_depth(
    has: str, comes: str, names: str
) -> None:
    lake = [schema(has)] if has else []

    with pytest.raises(ClashError, match=f"^{names} of the rows have names that are one to Spark"):
        united([*lake, schema(comes)])

    assert united([schema(comes)], is_case_sensitive=True).simpleString()


def test_columns_keep_their_order_and_spelling_and_may_be_missing() -> None:
    one, other = schema("a int not null, B string"), schema("c int, b string, A bigint")

    found = united([one, other])
    assert found.simpleString() == "struct<a:bigint,B:string,c:int>"
    assert all(field.nullable for field in found.fields)
    assert len(united([one, other], is_case_sensitive=True).fields) == 5


def test_changes_are_paths_as_sql_writes_them() -> None:
    before = schema("a int, `x y` struct<b:int,c:string>, l array<int>, m map<string,float>")
    after = schema(
        "a int, `x y` struct<b:bigint,c:string,d:int>, l array<double>, m map<string,double>, n int"
    )

    assert changes(before, after) == [
        TypeChange("`x y`.`b`", "bigint"),
        TypeChange("`l`.element", "double"),
        TypeChange("`m`.value", "double"),
    ]
