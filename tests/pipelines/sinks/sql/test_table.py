"""The sink as a pipeline sees it: Spark's frames into tables."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.sinks.sql.tables import TestTable, a_run

from headrace.pipelines.definition import RECORD_FIELDS, OpenSink
from headrace.pipelines.errors import PipelineDefinitionError, SinkError
from headrace.pipelines.sinks.sql.columns import PROVENANCE, Column
from headrace.pipelines.sinks.sql.table import SqlTable, from_uri
from headrace.pipelines.spans import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 11, 16, 12, 30, 0, 123456, tzinfo=UTC)


def a_frame(spark: "SparkSession", fields: str, *rows: tuple[Any, ...]) -> "DataFrame":
    """Rows with `_record`: offsets count up, and a row of one value is a tombstone of that key."""
    width = fields.count(":") or len(fields.split(", "))
    found = []
    for offset, row in enumerate(rows):
        is_tombstone = len(row) == 1
        record = (row[0] if is_tombstone else None, "topic", 0, offset, AT, None, is_tombstone)
        found.append((*((None,) * width if is_tombstone else row), record))
    return spark.createDataFrame(found, f"{fields}, _record struct<{RECORD_FIELDS}>")


def opened(table: TestTable, *key: str, has_provenance: bool = False) -> OpenSink:
    sink = SqlTable(table.url, table.name, key, has_provenance=has_provenance)
    return sink.open(a_run(table.name, table.told))


@pytest.mark.spark
def test_every_type_of_spark_has_its_place(spark: "SparkSession", table: TestTable) -> None:
    frame = spark.sql(
        "select 'k' as k, cast(1 as tinyint) a, cast(2 as smallint) b, 3 c, 4L d, "
        "cast(0.1 as float) e, 0.2D f, 1.50BD g, true h, x'00ff' i, date'2026-02-03' j, "
        "timestamp'2026-02-03 04:05:06.000007' l, timestamp_ntz'2026-02-03 04:05:06.000007' m, "
        "named_struct('x', 1, 'y', array('z')) n, map('p', 1) o, array(1, null) p, null q"
    )
    sink = opened(table, "k")

    assert sink.write(frame, Batch(0))

    kinds = ["int", "int", "int", "bigint", "double", "double", "decimal(10,2)", "boolean"]
    kinds += ["binary", "date", "timestamp", "timestamp", "json", "json", "json", "string"]
    columns = [Column(name, kind) for name, kind in zip("abcdefghijlmnopq", kinds, strict=True)]
    at = datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert table.rows(columns) == [
        (
            *(1, 2, 3, 4, 0.10000000149011612, 0.2, Decimal("1.50"), True, b"\x00\xff"),
            *(date(2026, 2, 3), at, at, '{"x":1,"y":["z"]}', '{"p":1}', "[1,null]", None),
        )
    ]
    sink.close()


@pytest.mark.spark
def test_rows_say_where_they_came_from(spark: "SparkSession", table: TestTable) -> None:
    frame = a_frame(spark, "k string, `_odd.name``s` int", ("a", 1), ("b", 2), ("a", 3))
    sink = opened(table, "k", has_provenance=True)

    sink.write(frame, Batch(0))

    columns = (Column("k", "string"), Column("_odd.name`s", "int"), *PROVENANCE)
    assert table.rows(columns) == [("a", 3, "topic", 0, 2, AT), ("b", 2, "topic", 0, 1, AT)]
    sink.close()


@pytest.mark.spark
def test_a_tombstone_deletes_by_its_messages_key(spark: "SparkSession", table: TestTable) -> None:
    sink = opened(table, "id")
    sink.write(a_frame(spark, "id int, v int", (1, 1), (2, 2), (3, 3)), Batch(0))

    assert sink.write(a_frame(spark, "id int, v int", (b"1",), (b"3",), (3, 4), (b"99",)), Batch(1))
    assert not sink.write(a_frame(spark, "id int, v int", (b"2",)), Batch(1))

    assert table.rows((Column("id", "int"), Column("v", "int"))) == [(2, 2), (3, 4)]
    sink.close()


@pytest.mark.spark
def test_a_key_of_several_columns_is_a_json_object_in_the_message(
    spark: "SparkSession", table: TestTable
) -> None:
    sink = opened(table, "id", "at")
    fields = "id int, at timestamp, v int"
    sink.write(a_frame(spark, fields, (1, AT, 1), (2, AT, 2)), Batch(0))

    key = f'{{"id":1,"at":"{AT.isoformat()}"}}'.encode()
    sink.write(a_frame(spark, fields, (key,)), Batch(1))

    assert table.rows((Column("id", "int"), Column("v", "int"))) == [(2, 2)]
    sink.close()


@pytest.mark.spark
def test_frames_that_make_no_table_are_refused(spark: "SparkSession", tmp_path: Any) -> None:
    with TestTable(f"sqlite:{tmp_path / 'r.db'}", "t") as table:
        cases = [
            (a_frame(spark, "k string", (None,), (None,)), "topic-0 at offset 0"),
            (a_frame(spark, "k int", (b"x",)), "at offset 0: the key column k is null"),
            (spark.sql("select 1 k union all select 1 k"), "the key 1 is there twice in one batch"),
            (spark.sql("select 1 a, 2 b"), "the key column k is not in the frame, which has a, b"),
            (spark.sql("select 1D k"), "key column k is a floating-point number"),
            (spark.sql("select array(1) k"), "key column k is a nested value"),
            (spark.sql("select 1 k, interval 1 day v"), "column v is of type interval day"),
            (spark.sql("select 1 k, 2 v, 3 V"), "columns v and V would be one column"),
        ]
        for batch_id, (frame, sentence) in enumerate(cases):
            sink = opened(table, "k")
            with pytest.raises(SinkError, match=sentence):
                sink.write(frame, Batch(batch_id))
            sink.close()


@pytest.mark.spark
def test_a_key_too_long_for_an_index_is_named(
    spark: "SparkSession", request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("mariadb_server")
    with TestTable(server.url, "long keys") as table:
        sink = opened(table, "k")
        assert sink.write(spark.sql("select repeat('ß', 700) k"), Batch(0))
        with pytest.raises(SinkError, match="of length 701; this database's index takes 700"):
            sink.write(spark.sql("select repeat('a', 701) k"), Batch(1))
        sink.close()


def test_a_sink_is_described_without_its_password() -> None:
    sink = SqlTable("postgresql://me:secret@db.example:5433/shop?table=orders&key=id,line")

    assert sink.describe() == "table orders by id, line in postgresql://me@db.example:5433/shop"
    assert "secret" not in repr(sink)


def test_what_the_uri_says_wins_over_the_options() -> None:
    options = {"table": "a", "key": "x", "provenance": "no", "format": "json"}

    assert from_uri("sqlite:f.db", options) == SqlTable(
        "sqlite:f.db", "a", ("x",), has_provenance=False
    )
    assert from_uri("sqlite:f.db?table=b&key=y,z&provenance=yes", options) == SqlTable(
        "sqlite:f.db", "b", ("y", "z")
    )


@pytest.mark.parametrize(
    ("sink", "sentence"),
    [
        (SqlTable("sqlite:f.db", key=("k",)), "no table is named in sqlite:f.db: add"),
        (SqlTable("sqlite:f.db", "t"), "table t has no key: add"),
    ],
)
def test_a_sink_without_table_or_key_does_not_open(sink: SqlTable, sentence: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=sentence):
        sink.open(a_run())


@pytest.mark.parametrize("name", ["headrace_batches", "Headrace_Schema", "headrace_load"])
def test_the_names_of_headraces_own_tables_are_taken(name: str) -> None:
    with pytest.raises(PipelineDefinitionError, match="is a table of headrace's own"):
        SqlTable("sqlite:f.db", name, ("k",))
