"""Tables made by others: what a column would not give back unchanged was refused."""

import itertools
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable, arrow_rows, give

from headrace.pipelines.errors import SinkError
from headrace.pipelines.refusal import RowsRefusedError
from headrace.pipelines.sinks.sql.columns import Column, can_be_key
from headrace.pipelines.sinks.sql.rows import changes_of
from headrace.pipelines.sinks.sql.writer import OpenSqlTable

COLUMNS = (KEY, VALUE)
KEYS = (
    "VARCHAR(3)",
    "VARCHAR(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    "CHAR(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
)


def _types(words: str, *more: str) -> list[str]:
    return [*words.split(), *more]


# Types that are taken, and types that change what they are given.
DECLARED = {
    "SQLite": _types(
        "BOOLEAN TINYINT SMALLINT INT INTEGER BIGINT REAL FLOAT DOUBLE TEXT CLOB VARCHAR(3) "
        "CHAR(3) NCHAR(3) STRING BLOB DATE DATETIME TIMESTAMP DECIMAL NUMERIC DECIMAL(5,2) "
        "DECIMAL(15,0) DECIMAL(15,15) DECIMAL(16,0) DECIMAL(16,2) DECIMAL(18,0) DECIMAL(19,0) "
        "NUMERIC(20,4) DECIMAL(38,0) DECIMAL(38,18) DECIMAL_TEXT(38,18) DECIMAL_TEXT(20,0)"
    ),
    "PostgreSQL": _types(
        "boolean smallint integer bigint real text varchar varchar(3) varchar(20) char(3) bpchar "
        "name bytea date timestamp timestamptz timestamp(3) timestamptz(0) json jsonb numeric "
        "numeric(5,2) numeric(20,0) numeric(20,4) numeric(38,18) numeric(2,-3) numeric(3,5) money",
        "double precision",
        "bit varying(3)",
        'varchar(3) COLLATE "C"',
    ),
    "MariaDB": _types(
        "BOOLEAN TINYINT SMALLINT MEDIUMINT INT BIGINT FLOAT DOUBLE FLOAT(7,3) DOUBLE(10,2) TEXT "
        "TINYTEXT MEDIUMTEXT LONGTEXT VARCHAR(3) CHAR(3) BLOB LONGBLOB VARBINARY(3) BINARY(3) "
        "DATE DATETIME DATETIME(3) DATETIME(6) TIMESTAMP(6) DECIMAL(5,2) DECIMAL(20,0) "
        "DECIMAL(20,4) DECIMAL(38,18) YEAR BIT(8) UUID INET6 JSON",
        "INT UNSIGNED",
        "BIGINT UNSIGNED ZEROFILL",
        "DECIMAL(20,4) UNSIGNED",
        "TIMESTAMP(6) NOT NULL",
        "TIMESTAMP(6) NOT NULL DEFAULT current_timestamp(6)",
        "VARCHAR(3) CHARACTER SET latin1",
        "VARCHAR(3) CHARACTER SET latin1 COLLATE latin1_nopad_bin",
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        "CHAR(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        "INT AUTO_INCREMENT, KEY (v)",
        "ENUM('abc', 'a')",
        "SET('abc', 'a')",
    ),
}
TEXTS = [
    "",
    " ",
    "a",
    "a ",
    "A",
    "abc",
    "abc ",
    "abc  ",
    "ab ",
    "ab",
    "abcd",
    "1",
    "01",
    "1.0",
    "é",
]
EDGES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [0, 1, -1, 2**31 - 1, -(2**31), 127, 128, 2**24 + 1],
    "bigint": [0, -1, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63 - 2, -(2**63)],
    "double": [0.0, 0.1, 1.5, 5e-324, 1.7976931348623157e308, 2.0**53, 1e22, 16777217.0],
    "string": TEXTS,
    "binary": [text.encode() for text in TEXTS] + [b"\0", b"a\0", b"\xff"],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    "timestamp": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, 0, 2, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
    "json": ['{"a":1}', '{"a":"text of some length"}'],
}
for _precision, _scale in ((5, 2), (15, 0), (15, 15), (16, 0), (16, 2), (18, 0), (19, 0), (20, 4)):
    EDGES[f"decimal({_precision},{_scale})"] = [
        Decimal(f"{number}e-{_scale}")
        for number in (0, 1, 10**_precision - 1, 10**_precision - 2, 1 - 10**_precision)
    ]


def test_whatever_a_column_of_another_owner_holds_comes_back_unchanged_or_was_refused(
    table: TestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_decimals(monkeypatch)
    name, taken = table.name, set[str]()
    for number, declared in enumerate(DECLARED[table.dialect.name]):
        table.name = f"{name}_{number}"
        table.make(f"k INT PRIMARY KEY, v {declared}")
        sink = table.sink()
        for kind, values in EDGES.items():
            columns = (Column("k", "int", is_key=True), Column("v", kind))

            written = _written(sink, columns, list(enumerate([*values, None])))

            if written:
                taken.add(declared)
                assert sorted(table.rows(columns)) == written, (declared, kind)
                table.execute(f"DELETE FROM {table.name}")
        table.close()
    assert len(taken) > 10, taken


def test_whatever_a_key_of_another_owner_holds_stays_a_row_of_its_own_or_was_refused(
    table: TestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_decimals(monkeypatch)
    name, taken = table.name, set[str]()
    kinds = {kind: values for kind, values in EDGES.items() if can_be_key(kind)}
    declared_keys = [each.partition(", KEY")[0] for each in DECLARED[table.dialect.name]]
    for number, declared in enumerate(declared_keys):
        table.name = f"{name}_{number}"
        try:
            table.make(f"k {declared} PRIMARY KEY, v INT")
            sink = table.sink()
        except (*table.dialect.errors, SinkError):
            continue  # no type for a key, or one that is compared in other ways than as bytes
        for kind, values in kinds.items():
            columns = (Column("k", kind, is_key=True), VALUE)

            written = _written(sink, columns, [(value, 1) for value in values])
            if not written:
                continue
            # One by one, as rows that are known; then as rows that go.
            taken.add(declared)
            assert all(_written(sink, columns, [(value, 2)]) for value, _ in written)
            kept = sorted((value, 2) for value, _ in written)
            assert sorted(table.rows(columns)) == kept, (declared, kind)
            gone = values[::2]
            _written(sink, columns, [(value, None) for value in gone], deleted=range(len(gone)))
            left = [row for row in kept if row[0] not in gone]
            assert sorted(table.rows(columns)) == left, (declared, kind)
            table.execute(f"DELETE FROM {table.name}")
        table.close()
    assert len(taken) > 5, taken


@pytest.mark.parametrize("declared", KEYS)
def test_a_key_that_is_longer_than_its_column_by_blanks_is_no_other_key(
    table: TestTable, declared: str
) -> None:
    if table.dialect.name == "SQLite" or ("utf8mb4" in declared) != (
        table.dialect.name == "MariaDB"
    ):
        pytest.skip("another database's")
    table.make(f"k {declared} PRIMARY KEY, v INT")
    if declared.startswith("CHAR"):
        with pytest.raises(SinkError, match=r"column k is char\(3\)"):
            table.write(COLUMNS, [("abc", 1)])
        return
    table.write(COLUMNS, [("abc", 1)])

    for batch in ([("abc ", 2)], [("abd ", 3), ("abd  ", 4)], [("ab", 5), ("abcd", 6)]):
        long = [number for number, (key, _) in enumerate(batch) if len(key) > 3]
        assert _refused(table, COLUMNS, batch) == long
    assert _refused(table, COLUMNS, [("abc  ", None)], deleted=[0]) == [0]

    assert table.rows(COLUMNS) == [("abc", 1)]


def test_a_decimal_that_sqlite_would_round_is_refused_with_the_reason_and_the_fix(
    table: TestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table.dialect.name != "SQLite":
        pytest.skip("the others keep every digit")
    _with_decimals(monkeypatch)
    table.make("k DECIMAL(20,0) PRIMARY KEY, v NUMERIC(20,4)")
    key, value = Column("k", "decimal(20,0)", is_key=True), Column("v", "decimal(15,4)")
    whole, rounded = Column("k", "bigint", is_key=True), Column("v", "decimal(20,4)")

    for columns, declared in (
        ((key, value), r"k is DECIMAL\(20,0\)"),
        ((whole, rounded), r"v is NUMERIC\(20,4\)"),
    ):
        with pytest.raises(SinkError, match=rf"column {declared}, .*15 digits.*DECIMAL_TEXT\(20,"):
            table.write(columns, [])

    # What comes back as it was is no matter of the digits that were declared.
    fitting = (whole, value)
    row = (2**63 - 1, Decimal("12345678901.2345"))
    table.write(fitting, [row, (2**63 - 2, row[1])])
    assert table.rows(fitting) == [(2**63 - 2, row[1]), row]


def test_a_decimal_that_sqlite_keeps_as_text_is_one_key_whatever_the_frames_digits(
    table: TestTable,
) -> None:
    wide, narrow = Column("k", "decimal(38,18)", is_key=True), Column("k", "decimal(10,2)", True)
    table.write((wide, VALUE), [(Decimal("1.10"), 1), (Decimal("2.00"), 1)])

    table.write((narrow, VALUE), [(Decimal("1.10"), 2), (Decimal("2.00"), None)], deleted=[1])

    assert table.rows((wide, VALUE)) == [(Decimal("1.10"), 2)]


def test_mariadb_makes_up_no_number_and_no_time_for_what_it_is_given(table: TestTable) -> None:
    if table.dialect.name != "MariaDB":
        pytest.skip("a habit of MariaDB")
    columns = (Column("k", "int", is_key=True), Column("v", "timestamp"))
    table.make("k INT AUTO_INCREMENT PRIMARY KEY, v TIMESTAMP(6) NOT NULL")
    at = datetime(2026, 11, 18, tzinfo=UTC)

    with pytest.raises(RowsRefusedError, match="'v' cannot be null") as refused:
        table.write(columns, [(0, at), (1, None)])
    table.write(columns, [(0, at)])
    table.write(columns, [(0, at)])

    assert [row.offset for row in refused.value.rows] == [1]
    assert table.rows(columns) == [(0, at)]


def test_mariadb_is_heard_also_where_its_owner_has_switched_warnings_off(table: TestTable) -> None:
    if table.dialect.name != "MariaDB":
        pytest.skip("the others have errors")
    table.make("k $text PRIMARY KEY, v VARCHAR(3)")
    columns = (KEY, Column("v", "string"))
    (before,) = table.execute("SELECT @@GLOBAL.sql_notes, @@GLOBAL.max_error_count")
    table.execute("SET GLOBAL sql_notes = 0, GLOBAL max_error_count = 0")
    try:
        assert _refused(table, columns, [("a", "abc "), ("b", "four"), ("c", "abc")]) == [0, 1]
    finally:
        table.execute("SET GLOBAL sql_notes = {}, GLOBAL max_error_count = {}".format(*before))


_numbers = itertools.count()


def _written(
    sink: OpenSqlTable, columns: tuple[Column, ...], rows: list[tuple[Any, ...]], **more: Any
) -> list[tuple[Any, ...]]:
    """Write those of the rows that the table does not refuse; none if it refuses the column."""
    kept = list(range(len(rows)))
    for _ in range(2):
        places = [(0, number) for number in kept]
        batch = arrow_rows(columns, [rows[number] for number in kept], places=places, **more)
        try:
            assert give(sink, changes_of(batch, columns), next(_numbers), columns)
            return [rows[number] for number in kept]
        except RowsRefusedError as refusal:
            refused = {row.offset for row in refusal.rows}
            kept = [number for number in kept if number not in refused]
        except SinkError:
            return []
    raise AssertionError(f"refused twice: {rows}")


def _refused(
    table: TestTable, columns: tuple[Column, ...], rows: list[tuple[Any, ...]], **more: Any
) -> list[int]:
    with pytest.raises(RowsRefusedError) as refusal:
        table.write(columns, rows, **more)
    return sorted(row.offset for row in refusal.value.rows)


def _with_decimals(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.pipelines.sinks.sql import tables

    for kind in [*EDGES, "decimal(20,0)", "decimal(15,4)"]:
        if kind.startswith("decimal("):
            precision, _, scale = kind[8:-1].partition(",")
            made = pa.decimal128(int(precision), int(scale))
            monkeypatch.setitem(tables.ARROW_TYPES, kind, made)
