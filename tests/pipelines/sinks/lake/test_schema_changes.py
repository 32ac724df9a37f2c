"""A lake whose rows change their columns: one lake of each format has all kinds of change."""

import shutil
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
import pytest
from tests.pipelines.sinks.lake.lakes import START_MS, run_of, write

from headrace.pipelines.errors import SinkError, SourceError
from headrace.pipelines.sinks.lake import LakeSink, compact_lake, read_lake
from headrace.pipelines.sinks.lake.lake_schema import LakeSchema
from headrace.pipelines.sinks.lake.widening import ClashError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BIG = 5_000_000_000
# Kind of change: before, after, the type that is read, and the two values that are read.
CHANGES: dict[str, tuple[str | None, str | None, str, Any, Any]] = {
    "int_to_bigint": ("7", f"{BIG}L", "bigint", 7, BIG),
    "bigint_to_int": (f"{BIG}L", "7", "bigint", BIG, 7),
    "float_to_double": ("float(1.5)", "0.1D", "double", 1.5, 0.1),
    "int_to_double": ("2147483647", "0.1D", "double", 2147483647.0, 0.1),
    "int_and_float": ("2147483647", "float(1.5)", "double", 2147483647.0, 1.5),
    "decimal_to_wider": (
        "cast(1.25 as decimal(5,2))",
        "cast(123456.123 as decimal(12,3))",
        "decimal(12,3)",
        Decimal("1.250"),
        Decimal("123456.123"),
    ),
    "bigint_to_decimal": (
        f"{BIG}L",
        "cast(0.25 as decimal(5,2))",
        "decimal(22,2)",
        Decimal("5000000000.00"),
        Decimal("0.25"),
    ),
    "date_to_timestamp_ntz": (
        "date'2026-01-02'",
        "timestamp_ntz'2026-01-02 03:04:05'",
        "timestamp_ntz",
        datetime(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5),
    ),
    "date_stays": (
        "date'2026-01-02'",
        "date'2026-01-03'",
        "date",
        date(2026, 1, 2),
        date(2026, 1, 3),
    ),
    "new_column": (None, "'new'", "string", None, "new"),
    "removed_column": ("'old'", None, "string", "old", None),
    "struct_field_added_and_widened": (
        "named_struct('a', 7, 'gone', 'g')",
        f"named_struct('b', 'n', 'a', {BIG}L)",
        "struct<a:bigint,gone:string,b:string>",
        {"a": 7, "gone": "g", "b": None},
        {"a": BIG, "gone": None, "b": "n"},
    ),
    "array_element_widened": ("array(7)", f"array({BIG}L)", "array<bigint>", [7], [BIG]),
    "struct_in_array": (
        "array(named_struct('a', 7))",
        f"array(named_struct('a', {BIG}L, 'b', 'n'))",
        "array<struct<a:bigint,b:string>>",
        [{"a": 7, "b": None}],
        [{"a": BIG, "b": "n"}],
    ),
    "map_value_widened": (
        "map('k', 7)",
        f"map('k', {BIG}L)",
        "map<string,bigint>",
        {"k": 7},
        {"k": BIG},
    ),
}
every_change = pytest.mark.parametrize("change", CHANGES)


@pytest.fixture(scope="module", params=["parquet", "delta"])
def lake(
    request: pytest.FixtureRequest, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp(request.param)
    sink = LakeSink(str(path), request.param).open(run_of(spark, "a"))
    for number in range(2):
        columns = {name: change[number] for name, change in CHANGES.items()}
        write(sink, rows(spark, number, columns), number)
    return path


@pytest.fixture(scope="module")
def as_read(spark: "SparkSession", lake: Path) -> "tuple[dict[str, str], list[dict[str, Any]]]":
    return read(spark, lake)


@pytest.fixture(scope="module")
def as_compacted(
    spark: "SparkSession", lake: Path
) -> "tuple[dict[str, str], list[dict[str, Any]]]":
    assert compact_lake(spark, str(lake)) == (2, 1)
    return read(spark, lake)


@every_change
def test_a_change_is_read_in_a_type_that_holds_both(
    as_read: "tuple[dict[str, str], list[dict[str, Any]]]", change: str
) -> None:
    *_, wanted, before, after = CHANGES[change]

    types, found = as_read

    assert types[change] == wanted
    assert [row[change] for row in found] == [before, after]


@every_change
def test_compaction_alters_no_value_and_any_tool_reads_what_it_wrote(
    as_compacted: "tuple[dict[str, str], list[dict[str, Any]]]", lake: Path, change: str
) -> None:
    *_, wanted, before, after = CHANGES[change]

    types, found = as_compacted

    assert types[change] == wanted
    assert [row[change] for row in found] == [before, after]
    if not (lake / "_delta_log").exists():  # which keeps the old files for older versions
        table = pyarrow.dataset.dataset(lake, partitioning="hive").to_table().sort_by("id")
        found_by_arrow = [_plain(value) for value in table[change].to_pylist()]
        assert found_by_arrow == [before, after]


def test_a_lake_with_notes_of_its_schemas_is_not_looked_through(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = LakeSink(str(tmp_path)).open(run_of(spark, "a"))
    write(sink, rows(spark, 0, {"x": "1"}), 0)
    write(sink, rows(spark, 1, {"x": f"{BIG}L", "y": "'n'"}), 1)
    looked = list[int]()
    real = LakeSchema._schemas_of

    def schemas_of(schema: LakeSchema, names: list[str]) -> object:
        looked.append(len(names))
        return real(schema, names)

    monkeypatch.setattr(LakeSchema, "_schemas_of", schemas_of)
    noted = read_lake(spark, str(tmp_path)).dtypes
    assert not looked

    # A lake of the version before has no notes; the next who writes makes them.
    shutil.rmtree(tmp_path / "_headrace/schemas")
    assert read_lake(spark, str(tmp_path)).dtypes == noted
    assert looked == [2]
    opened = LakeSink(str(tmp_path)).open(run_of(spark, "a"))
    write(opened, rows(spark, 2, {"x": "2"}), 2)
    assert looked == [2, 2]
    assert read_lake(spark, str(tmp_path)).dtypes == noted
    assert looked == [2, 2]


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_what_no_type_holds_is_refused_before_anything_is_written(
    spark: "SparkSession", tmp_path: Path, kind: str
) -> None:
    sink = LakeSink(str(tmp_path), kind).open(run_of(spark, "a"))
    write(sink, rows(spark, 0, {"x": "1"}), 0)

    with pytest.raises(SinkError, match="column x of the lake is int and that of the rows string"):
        write(sink, rows(spark, 1, {"x": "'a'"}), 1)

    write(sink, rows(spark, 1, {"x": "2", "y": "'a'"}), 1)
    _, found = read(spark, tmp_path)
    assert [(row["x"], row["y"]) for row in found] == [(1, None), (2, "a")]


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_two_fields_that_are_one_to_spark_are_refused_before_anything_is_written(
    spark: "SparkSession", tmp_path: Path, kind: str
) -> None:
    sink = LakeSink(str(tmp_path), kind).open(run_of(spark, "a"))
    twins = {"s": "named_struct('x', 1, 'X', 2)"}

    for number in range(2):  # into a lake that is empty, and one that is not
        with pytest.raises(ClashError, match=r"s\.x and s\.X of the rows have names that are one"):
            write(sink, rows(spark, number, twins), number)
        write(sink, rows(spark, number, {"s": "named_struct('x', 1)"}), number)

    _, found = read(spark, tmp_path)
    assert [row["s"] for row in found] == [{"x": 1}, {"x": 1}]


def test_a_file_of_others_with_two_fields_that_are_one_to_spark_is_named(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "date=2026-11-16/hour=10"
    rows(spark, 0, {"s": "named_struct('x', 1, 'X', 2)"}).write.parquet(str(folder))

    with pytest.raises(
        SourceError, match=r"with s\.x and s\.X, .* one to Spark: .*\.parquet; read"
    ):
        read_lake(spark, str(tmp_path))


def test_a_lake_that_others_mixed_is_told_by_column_types_and_file(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "date=2026-11-16/hour=10"
    rows(spark, 0, {"x": "1"}).write.parquet(str(folder / "one"))
    rows(spark, 0, {"x": "'a'"}).write.parquet(str(folder / "two"))
    files = sorted(folder.glob("*/*.parquet"))
    for number, file in enumerate(files):
        file.rename(folder / f"{number}.parquet")
    for name in ("one", "two"):
        shutil.rmtree(folder / name)

    with pytest.raises(
        SourceError, match=r"column x is int in some and string in others, as in .*\d\.parquet"
    ):
        read_lake(spark, str(tmp_path))
    with pytest.raises(ClashError, match="cannot be read as one"):
        compact_lake(spark, str(tmp_path))
    assert len(list(folder.glob("*.parquet"))) == len(files)


def rows(spark: "SparkSession", number: int, columns: "dict[str, str | None]") -> "DataFrame":
    return spark.range(number, number + 1).selectExpr(
        "id",
        f"timestamp_millis({START_MS}) timestamp",
        *(f"{column} as {name}" for name, column in columns.items() if column),
    )


def read(spark: "SparkSession", lake: Path) -> "tuple[dict[str, str], list[dict[str, Any]]]":
    frame = read_lake(spark, str(lake))
    return dict(frame.dtypes), [row.asDict(recursive=True) for row in frame.orderBy("id").collect()]


def _plain(value: Any) -> Any:
    """Arrow gives a map as pairs."""
    is_pairs = isinstance(value, list) and value and isinstance(value[0], tuple)
    return dict(value) if is_pairs else value
