"""Rows that a database refuses: found among the others, which it takes."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable, arrow_rows, give

from headrace.errors import SinkError
from headrace.pipelines.refusal import RowsRefusedError
from headrace.pipelines.sinks.sql import row_faults
from headrace.pipelines.sinks.sql.columns import Column
from headrace.pipelines.sinks.sql.row_faults import refuse_rows
from headrace.pipelines.sinks.sql.rows import Changes, changes_of

COLUMNS = (KEY, VALUE)


@given(bad=st.sets(st.integers(0, 40), min_size=1), deleted=st.sets(st.integers(0, 40)))
def test_just_the_rows_at_fault_are_found(bad: set[int], deleted: set[int]) -> None:
    rows = arrow_rows(COLUMNS, [(f"{number:02}", 0) for number in range(41)], deleted=list(deleted))
    changes = changes_of(rows, COLUMNS)

    def attempt(some: Changes) -> str | None:
        keys = some.upserts.column("0").to_pylist() + some.deletes.column("0").to_pylist()
        return "bad" if bad & set(map(int, keys)) else None

    with pytest.raises(RowsRefusedError) as refused:
        refuse_rows("t", changes, attempt, "the database says no")

    assert sorted(row.offset for row in refused.value.rows) == sorted(bad)


def test_a_table_that_refuses_too_many_rows_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_faults, "MAX_REFUSED_ROWS", 3)
    changes = changes_of(arrow_rows(COLUMNS, [(str(number), 0) for number in range(9)]), COLUMNS)

    with pytest.raises(SinkError, match="so are more than 3 rows of one batch: change table t"):
        refuse_rows("t", changes, lambda some: "bad", "the database says no")


def test_rows_that_nobody_knows_the_record_of_end_the_run_by_their_key() -> None:
    rows = arrow_rows(COLUMNS, [("good", 0), ("bad", 0)], has_record=False)

    def attempt(some: Changes) -> str | None:
        return "bad" if "bad" in some.upserts.column("0").to_pylist() else None

    with pytest.raises(SinkError, match="says no, for the key bad; filter such rows"):
        refuse_rows("t", changes_of(rows, COLUMNS), attempt, "the database says no")


def test_a_key_that_no_index_of_postgresql_takes_is_refused_and_one_that_compresses_is_not(
    request: pytest.FixtureRequest,
) -> None:
    server = request.getfixturevalue("postgresql_server")
    letters = [chr(number) for number in range(33, 127)]
    random.seed(13)
    noise = "".join(random.choices(letters, k=5000))
    with TestTable(server.url, "long keys") as table:
        rows = [("a", 1), (noise, 2), ("x" * 100_000, 3), ("z", 4)]

        assert refused(table, COLUMNS, rows) == [
            (1, "PostgreSQL refused the row: index row size 5016 exceeds btree version 4 "
                "maximum 2704 for index \"long keys_pkey\"")
        ]  # fmt: skip

        table.write(COLUMNS, [row for row in rows if row[0] != noise])
        assert table.rows(COLUMNS) == [("a", 1), ("x" * 100_000, 3), ("z", 4)]


# Rules of tables, what they refuse, and a word of what the databases say of it.
RULES: list[tuple[str, str, Any, str]] = [
    ("v INT CHECK (v < 5)", "int", 7, "check|constraint"),
    ("v INT NOT NULL", "int", None, "null"),
    ("v VARCHAR(3)", "string", "four", "too long|truncated"),
    ("v INT, FOREIGN KEY (v) REFERENCES parents (id)", "int", 7, "foreign key"),
    ("v TIMESTAMP(6) NULL", "timestamp", datetime(2150, 1, 1, tzinfo=UTC), "out of range"),
    ("v VARCHAR(50) CHARACTER SET latin1", "string", "\U0001f30a", "incorrect string"),
    ("v VARBINARY(3)", "binary", b"four", "truncated|too long"),
]
OF_MARIADB = ("TIMESTAMP", "latin1", "VARBINARY")


@pytest.mark.parametrize(("rule", "kind", "value", "word"), RULES)
def test_a_row_that_breaks_a_rule_of_its_table_is_refused_and_the_others_written(
    table: TestTable, rule: str, kind: str, value: object, word: str
) -> None:
    name = table.dialect.name
    if name != "MariaDB" and any(mark in rule for mark in OF_MARIADB):
        pytest.skip("a limit of MariaDB")
    if name == "SQLite" and "VARCHAR" in rule:
        pytest.skip("SQLite keeps any length")
    table.execute("CREATE TABLE IF NOT EXISTS parents (id INT PRIMARY KEY)")
    table.make(f"k $text PRIMARY KEY, {rule}")
    columns = (KEY, Column("v", kind))
    allowed = None if "NULL" not in rule or kind != "int" else 1
    rows = [("a", allowed), ("b", value), ("c", allowed)]

    ((offset, reason),) = refused(table, columns, rows)

    assert offset == 1
    assert reason.startswith(f"{name} refused the row: ")
    assert any(each in reason.lower() for each in word.split("|"))
    assert table.rows(columns) == []
    table.write(columns, [row for row in rows if row[0] != "b"])
    assert [row[0] for row in table.rows(columns)] == ["a", "c"]


def test_a_delete_that_breaks_a_rule_is_refused_too(table: TestTable) -> None:
    table.make("k $text PRIMARY KEY, v INT", "CREATE TABLE of_$t (k $text REFERENCES $t (k))")
    table.write(COLUMNS, [("a", 1), ("b", 2)])
    table.execute(f"INSERT INTO of_{table.name} VALUES ('a')")

    ((offset, reason),) = refused(table, COLUMNS, [("b", 3), ("a", None)], deleted=[1])

    assert offset == 1
    assert "foreign key" in reason.lower()


def test_a_rule_that_came_with_an_altered_table_is_told_as_such(table: TestTable) -> None:
    sink = table.sink()
    table.write(COLUMNS, [("a", 1)])
    assert give(sink, changes_of(arrow_rows(COLUMNS, [("b", 2)]), COLUMNS), 1, COLUMNS)
    if table.dialect.name == "SQLite":
        pytest.skip("SQLite adds no column that must be given")
    table.execute(f"DELETE FROM {table.name}")
    table.execute(f"ALTER TABLE {table.name} ADD COLUMN w INT NOT NULL")

    with pytest.raises(SinkError, match="column w may not be null and has no default"):
        give(sink, changes_of(arrow_rows(COLUMNS, [("c", 3)]), COLUMNS), 2, COLUMNS)


def test_rows_that_a_trigger_swallows_are_told(table: TestTable) -> None:
    if table.dialect.name == "MariaDB":
        pytest.skip("a trigger of MariaDB swallows nothing")
    table.make("k $text PRIMARY KEY, v INT")
    if table.dialect.name == "SQLite":
        body = "WHEN NEW.v = 2 BEGIN SELECT RAISE(IGNORE); END"
        table.execute(f"CREATE TRIGGER tr BEFORE INSERT ON {table.name} {body}")
    else:
        table.execute(
            "CREATE OR REPLACE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS "
            "$f$ BEGIN IF NEW.v = 2 THEN RETURN NULL; END IF; RETURN NEW; END $f$"
        )
        table.execute(
            f"CREATE TRIGGER tr BEFORE INSERT ON {table.name} "
            "FOR EACH ROW EXECUTE FUNCTION swallow()"
        )

    table.write(COLUMNS, [("a", 1), ("b", 2)])

    assert table.rows(COLUMNS) == [("a", 1)]
    assert table.told == [
        f"table {table.name}, rows swallowed by a trigger of the table: 1 of 2 in this batch"
    ]


def refused(
    table: TestTable, columns: tuple[Column, ...], rows: list[tuple[Any, ...]], **more: Any
) -> list[tuple[int, str]]:
    """Offset and reason of the rows that the table does not take."""
    with pytest.raises(RowsRefusedError) as refusal:
        table.write(columns, rows, **more)
    return [(row.offset, row.reason) for row in refusal.value.rows]
