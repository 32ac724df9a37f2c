"""Rows that a database refuses: found among the others, which it takes."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable, arrow_rows, give

from headrace.pipelines.errors import SinkError
from headrace.pipelines.refusal import RowsRefusedError
from headrace.pipelines.sinks.sql import row_faults
from headrace.pipelines.sinks.sql.columns import Column
from headrace.pipelines.sinks.sql.row_faults import write_in_parts
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
        write_in_parts("t", changes, attempt, "the database says no")

    assert sorted(row.offset for row in refused.value.rows) == sorted(bad)


def test_a_table_that_refuses_too_many_rows_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_faults, "MAX_REFUSED_ROWS", 3)
    changes = changes_of(arrow_rows(COLUMNS, [(str(number), 0) for number in range(9)]), COLUMNS)

    with pytest.raises(SinkError, match="so are more than 3 rows of one batch: change table t"):
        write_in_parts("t", changes, lambda some: "bad", "the database says no")


class Family:
    """A table whose rows each need a parent, there or in the same part; it keeps what it takes."""

    def __init__(self, parents: dict[str, str | None], bad: set[str]) -> None:
        self.parents, self.bad = parents, bad
        self.taken = set[str]()
        self.tries = 0

    def attempt(self, some: Changes) -> str | None:
        self.tries += 1
        keys = set(some.upserts.column("0").to_pylist())
        if self.bad & keys:
            return "bad"
        if not {self.parents[key] for key in keys} <= self.taken | keys | {None}:
            return "no parent"
        self.taken |= keys
        return None

    def refused(self, order: list[str]) -> set[str]:
        rows = arrow_rows(COLUMNS, [(key, 0) for key in order])
        try:
            write_in_parts("t", changes_of(rows, COLUMNS), self.attempt, "the database says no")
        except RowsRefusedError as refusal:
            return {order[row.offset] for row in refusal.rows}
        return set()


@given(
    drawn=st.lists(st.integers(0, 30), min_size=1, max_size=31),
    order=st.randoms(use_true_random=False),
    bad=st.sets(st.integers(0, 30)),
)
def test_of_rows_that_need_each_other_just_the_bad_and_their_descendants_are_refused(
    drawn: list[int], order: random.Random, bad: set[int]
) -> None:
    # The parent of a row is one that was drawn before it, or there is none.
    parents = {str(row): str(each) if each < row else None for row, each in enumerate(drawn)}
    orphans = {str(row) for row in bad if row < len(drawn)}
    expected = set(orphans)
    for row in parents:
        if parents[row] in expected:
            expected.add(row)
    keys = list(parents)
    order.shuffle(keys)
    family = Family(parents, orphans)

    assert family.refused(keys) == expected
    assert family.taken == set(parents) - expected


@pytest.mark.parametrize("parent_comes", ["first", "last"])
def test_a_bad_row_among_thousands_of_children_costs_few_tries(parent_comes: str) -> None:
    children = [f"child {number}" for number in range(5000)]
    parents: dict[str, str | None] = {"parent": None, "bad": None}
    parents |= dict.fromkeys(children, "parent")
    order = [*children[:2500], "bad", *children[2500:]]
    order = ["parent", *order] if parent_comes == "first" else [*order, "parent"]
    family = Family(parents, {"bad"})

    assert family.refused(order) == {"bad"}
    assert family.tries < 150


def test_tries_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_faults, "MAX_TRIES", 50)
    order = [f"{number:03}" for number in range(100)]
    family = Family(dict(zip(order, [*order[1:], None], strict=True)), {"x"})
    family.parents[order[-1]] = "nobody"

    with pytest.raises(SinkError, match=r"not found in 50 tries.*change table t"):
        family.refused(order)


def test_rows_that_nobody_knows_the_record_of_end_the_run_by_their_key() -> None:
    rows = arrow_rows(COLUMNS, [("good", 0), ("bad", 0)], has_record=False)

    def attempt(some: Changes) -> str | None:
        return "bad" if "bad" in some.upserts.column("0").to_pylist() else None

    with pytest.raises(SinkError, match="says no, for the key bad; filter such rows"):
        write_in_parts("t", changes_of(rows, COLUMNS), attempt, "the database says no")


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


FAMILY = (
    "k $text PRIMARY KEY, parent $text, v INT CHECK (v > 0), FOREIGN KEY (parent) REFERENCES $t (k)"
)
RELATED = (KEY, Column("parent", "string"), VALUE)


def test_a_child_may_come_with_its_parent_whatever_the_order_of_their_keys(
    table: TestTable,
) -> None:
    table.make(FAMILY)

    table.write(RELATED, [("b", None, 1), ("a", "b", 1), ("c", "a", 1)])
    table.write(RELATED, [("z", None, 1), ("a", "z", 2), ("b", None, None)], deleted=[2])
    assert table.rows(RELATED) == [("a", "z", 2), ("c", "a", 1), ("z", None, 1)]

    # And go with it: the child first, as in any log that had to keep the rule.
    gone = [("c", None, None), ("a", None, None), ("z", None, None)]
    table.write(RELATED, gone, deleted=range(3))
    assert table.rows(RELATED) == []


def test_a_good_child_beside_a_bad_row_is_not_blamed(table: TestTable) -> None:
    table.make(FAMILY)
    batch = [("b", None, 1), ("a", "b", 1), ("c", None, -1), ("d", "c", 1), ("e", "nobody", 1)]

    assert [offset for offset, _ in refused(table, RELATED, batch[:3])] == [2]
    reasons = dict(refused(table, RELATED, batch))

    assert sorted(reasons) == [2, 3, 4]
    assert "foreign key" not in reasons[2].lower()
    assert "foreign key" in reasons[3].lower()
    assert "foreign key" in reasons[4].lower()
    table.write(RELATED, batch[:2])
    assert table.rows(RELATED) == [("a", "b", 1), ("b", None, 1)]


def test_a_batch_that_is_written_in_parts_is_noted_once_and_whole(table: TestTable) -> None:
    table.make(FAMILY)
    rows = [
        (f"{number:03}", f"{number + 1:03}" if number < 299 else None, 1) for number in range(300)
    ]
    changes = changes_of(arrow_rows(RELATED, rows[::-1]), RELATED)
    sink = table.sink()

    assert give(sink, changes, 0, RELATED)
    assert not give(sink, changes, 0, RELATED)

    assert table.rows(RELATED) == rows
    (noted,) = table.execute(
        f"SELECT {table.dialect.quote('rows')}, revision FROM headrace_batches "
        f"WHERE table_name = '{table.name}'"
    )
    assert noted == (300, 1)


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
