"""Tables that change with their frames, and tables that others made."""

import json

import pytest
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable, arrow_rows, give

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql.columns import Column
from headrace.pipelines.sinks.sql.rows import changes_of


def test_a_new_column_is_added_and_old_rows_have_null_in_it(table: TestTable) -> None:
    table.write((KEY, VALUE), [("a", 1)])
    columns = (KEY, VALUE, Column("note", "string"))

    table.write(columns, [("b", 2, "new")])

    assert table.rows(columns) == [("a", 1, None), ("b", 2, "new")]


def test_a_column_that_is_no_longer_in_the_frame_is_left_alone(table: TestTable) -> None:
    columns = (KEY, VALUE, Column("note", "string"))
    table.write(columns, [("a", 1, "x"), ("b", 1, "x")])

    table.write((KEY, VALUE), [("a", 2), ("c", 2)])

    assert table.rows(columns) == [("a", 2, "x"), ("b", 1, "x"), ("c", 2, None)]


def test_two_pipelines_fill_their_own_columns_of_one_table(table: TestTable) -> None:
    other = (KEY, Column("w", "int"))
    table.write((KEY, VALUE), [("a", 1), ("b", 1)])

    batch = changes_of(arrow_rows(other, [("a", 5), ("c", 5)]), other)
    assert give(table.sink(app_id=f"other of {table.name}"), batch, 0, other)
    table.write((KEY, VALUE), [("a", 2)])

    assert table.rows((KEY, VALUE, other[1])) == [("a", 2, 5), ("b", 1, None), ("c", None, 5)]


@pytest.mark.parametrize(
    ("old", "old_value", "new", "new_value"),
    [
        ("int", 1, "bigint", 2**40),
        ("int", 1, "double", 1.5),
        ("int", 1, "decimal(38,18)", None),
        ("decimal(10,2)", None, "decimal(38,18)", None),
        ("json", "{}", "string", "text"),
    ],
)
def test_a_column_is_widened(
    table: TestTable, old: str, old_value: object, new: str, new_value: object
) -> None:
    if table.dialect.name == "SQLite" and new == "decimal(38,18)":
        pytest.skip("SQLite keeps long decimals as text and cannot change a column to it")
    table.write((KEY, Column("v", old)), [("a", old_value)])
    columns = (KEY, Column("v", new))

    table.write(columns, [("b", new_value)])

    assert table.rows(columns) == [("a", old_value), ("b", new_value)]
    assert _history(table)[-1][1]["type"] == new


def test_a_frame_that_is_narrower_than_its_table_fits(table: TestTable) -> None:
    table.write((KEY, Column("v", "bigint")), [("a", 2**40)])

    table.write((KEY, VALUE), [("b", 1)])

    assert table.rows((KEY, VALUE)) == [("a", 2**40), ("b", 1)]


@pytest.mark.parametrize(
    ("old", "new"), [("int", "string"), ("string", "int"), ("bigint", "double"), ("date", "int")]
)
def test_a_type_that_does_not_fit_is_refused_with_both_types_and_the_fix(
    table: TestTable, old: str, new: str
) -> None:
    table.write((KEY, Column("v", old)), [])

    with pytest.raises(SinkError) as refused:
        table.write((KEY, Column("v", new)), [])

    sentence = str(refused.value)
    declared = table.dialect.type_of(Column("v", old), 1)
    assert f"table {table.name}: column v is {declared}".lower() in sentence.lower()
    assert f"the frame's is {new}" in sentence
    assert "cast it in the transform" in sentence


def test_another_key_is_refused(table: TestTable) -> None:
    table.write((KEY, VALUE), [("a", 1)])

    with pytest.raises(SinkError, match=r"no unique index on the key \(v\) but on \(k\)"):
        table.write((Column("k", "string"), Column("v", "int", is_key=True)), [("a", 1)])


def test_the_schemas_versions_are_kept(table: TestTable) -> None:
    table.write((KEY, VALUE), [])
    table.write((KEY, VALUE), [])
    table.write((KEY, VALUE, Column("note", "string")), [])

    assert [[column["name"] for column in version] for version in _history(table)] == [
        ["k", "v"],
        ["k", "v", "note"],
    ]


def test_a_table_made_by_others_is_used_if_it_fits(table: TestTable) -> None:
    table.make("id INT UNIQUE, k $text NOT NULL UNIQUE, v BIGINT, mine INT")
    table.execute(f"INSERT INTO {table.name} VALUES (1, 'a', 1, 5)")

    table.write((KEY, VALUE), [("a", 2), ("b", 2)])

    every = (Column("k", "string"), Column("id", "int"), Column("v", "bigint"))
    assert table.rows((*every, Column("mine", "int"))) == [("a", 1, 2, 5), ("b", None, 2, None)]
    assert _history(table) == []


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("k $text, v BIGINT", r"no unique index on the key \(k\) but on nothing"),
        ("k $text UNIQUE", "was not made by headrace and has no column v"),
        ("k $text UNIQUE, v SMALLINT", "column v is smallint"),
        ("k $text UNIQUE, v TIME", "column v is time"),
        ("k $text UNIQUE, v INT, w INT NOT NULL", "column w may not be null"),
    ],
)
def test_a_table_made_by_others_that_does_not_fit_is_not_touched(
    table: TestTable, columns: str, sentence: str
) -> None:
    if table.dialect.name == "SQLite" and "SMALLINT" in columns:
        pytest.skip("SQLite's integers are all of one size")
    table.make(columns)
    before = table.declared()

    with pytest.raises(SinkError, match=f"(?i){sentence}"):
        table.write((KEY, VALUE), [("a", 1)])

    assert table.declared() == before


def _history(table: TestTable) -> list[list[dict[str, object]]]:
    columns = table.dialect.quote("columns")
    rows = table.execute(
        f"SELECT {columns} FROM headrace_schema WHERE table_name = '{table.name}' ORDER BY version"
    )
    return [json.loads(text) for (text,) in rows]
