"""What goes into a table comes out of it, the same from all three databases."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipelines.sinks.sql.tables import KEY, TestTable, by_key

from headrace.pipelines.sinks.sql.columns import Column

COLUMNS = (
    KEY,
    Column("flag", "boolean"),
    Column("small", "int"),
    Column("big", "bigint"),
    Column("real", "double"),
    Column("price", "decimal(10,2)"),
    Column("exact", "decimal(38,18)"),
    Column("text", "string"),
    Column("raw", "binary"),
    Column("day", "date"),
    Column("at", "timestamp"),
    Column("nested", "json"),
)
# PostgreSQL cannot hold U+0000; that it is replaced has a test of its own.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
ROW = st.tuples(
    st.none() | st.booleans(),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
    st.none() | st.decimals(-99999999, 99999999, places=2),
    st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(f"{number}e-18")),
    st.none() | TEXT,
    st.none() | st.binary(),
    st.none() | st.dates(),
    st.none() | st.datetimes().map(lambda at: at.replace(tzinfo=UTC)),
    st.none() | TEXT,
)


@settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(rows=st.lists(ROW, min_size=1, max_size=20))
def test_any_value_comes_back(table: TestTable, rows: list[tuple[Any, ...]]) -> None:
    batch = [(f"key {index}", *row) for index, row in enumerate(rows)]

    table.write(COLUMNS, batch)

    kept = [row for row in table.rows(COLUMNS) if row[0] in {row[0] for row in batch}]
    assert kept == by_key(batch)


TRICKY_TEXTS = [
    "",
    " ",
    "a ",
    "\\N",
    "N",
    "NULL",
    "null",
    "\\",
    "\\.",
    "\\\\x41",
    "tab\there",
    "line\nend\r\nagain\r",
    "'single' \"double\" `back`",
    "comma,semicolon;",
    "%s %% %(a)s ?",
    "emoji 🌊 ẞ \U0010ffff \ufeff",
    "\x01\x07\x1a\x1b\x7f\x85\u2028",
]


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_awkward_texts_and_bytes_come_back_as_keys_and_as_values(
    table: TestTable, kind: str
) -> None:
    columns = (Column("k", kind, is_key=True), Column("v", kind))
    values = [text if kind == "string" else text.encode() for text in TRICKY_TEXTS]
    if kind == "binary":
        values += [b"\0", b"\xff\xfe\0\x80", bytes(range(256))]
    batch = [(value, value) for value in values]

    table.write(columns, batch)
    assert table.rows(columns) == by_key(batch)

    table.write(columns, batch[::2], deleted=range(len(batch)))
    assert table.rows(columns) == by_key(batch[1::2])


def test_keys_of_every_other_type_find_their_rows_again(table: TestTable) -> None:
    columns = (
        Column("a", "int", is_key=True),
        Column("b", "bigint", is_key=True),
        Column("c", "boolean", is_key=True),
        Column("d", "date", is_key=True),
        Column("e", "timestamp", is_key=True),
        Column("f", "decimal(10,2)", is_key=True),
        Column("v", "string"),
    )
    at = datetime(2026, 11, 16, 12, 0, 0, 1, tzinfo=UTC)
    key = (-1, 2**63 - 1, True, date(1, 1, 1), at, Decimal("1.10"))
    other = (*key[:-1], Decimal("1.20"))
    table.write(columns, [(*key, "old"), (*other, "gone")])

    table.write(columns, [(*key, "new"), (*other, None)], deleted=[1])

    assert table.rows(columns) == [(*key, "new")]


def test_values_no_table_holds_are_replaced_alike_and_told(table: TestTable) -> None:
    columns = (KEY, Column("text", "string"), Column("real", "double"), Column("x", "double"))
    batch = [("a", "\0", math.nan, 1.5), ("c", "d", math.inf, -math.inf)]

    changes = table.write(columns, batch)

    assert table.rows(columns) == [
        ("a", "\ufffd", None, 1.5),
        ("c", "d", None, None),
    ]
    assert list(changes.notes.values()) == [
        "column text: 1 value no table holds replaced, the first in topic-0 at offset 0",
        "column real: 2 values no table holds replaced, the first in topic-0 at offset 0",
        "column x: 1 value no table holds replaced, the first in topic-0 at offset 1",
    ]


ODD_NAMES = ['quo"te', "ba`ck", "sp ace", "dot.ted", "select", "ünï", "per%s", "semi;", "Case"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_tables_and_columns_are_names(table: TestTable, name: str) -> None:
    columns = (Column(f"{name} key", "string", is_key=True), Column(name, "int"))
    table.name = f"{table.name} {name}"
    table.write(columns, [("a", 1), ("b", 2)])

    table.write(columns, [("a", 3), ("b", None)], deleted=[1])

    assert table.rows(columns) == [("a", 3)]
