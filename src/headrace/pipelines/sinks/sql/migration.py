"""A table is made to fit the frames that go into it: created, given columns, widened; or refused.

What the database says about the table is what counts. `headrace_schema` tells its history, and
that a table is ours: one that is not there was made by others and is never altered.
"""

import json
from datetime import UTC, datetime

from headrace.errors import SinkError
from headrace.pipelines.sinks.sql.columns import Column, TableShape, can_hold
from headrace.pipelines.sinks.sql.dialect import (
    Connection,
    Dialect,
    ExistingColumn,
    ExistingTable,
)

SCHEMA_TABLE = TableShape(
    "headrace_schema",
    (
        Column("table_name", "string", is_key=True),
        Column("version", "int", is_key=True),
        Column("columns", "string"),
        Column("applied_at", "timestamp"),
    ),
)


def now_text() -> str:
    """The time, in UTC, as every database reads it."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def migrate(
    dialect: Dialect, connection: Connection, table: str, columns: tuple[Column, ...]
) -> TableShape:
    """Make `table` fit `columns` and return its shape; SinkError names what does not fit."""
    shape = TableShape(table, columns)
    with dialect.one_at_a_time(connection):
        existing = dialect.read_table(connection, table)
        versions = _versions(dialect, connection, table)
        cursor = connection.cursor()
        if existing is None:
            cursor.execute(dialect.create_table(connection, shape))
        else:
            _check_key(dialect, shape, existing)
            statements = _statements(dialect, shape, existing, is_ours=bool(versions))
            for statement in statements:
                cursor.execute(statement)
            if not versions:
                return shape
            absent = _absent(dialect, shape, existing)
            shape = TableShape(table, columns, tuple(column.name for column in absent))
        _record(dialect, connection, shape, versions)
    return shape


def _statements(
    dialect: Dialect, shape: TableShape, existing: ExistingTable, *, is_ours: bool
) -> list[str]:
    found = {_folded(dialect, column.name): column for column in existing.columns}
    statements = []
    for column in shape.columns:
        old = found.get(_folded(dialect, column.name))
        statement = (
            _added(dialect, shape, column, is_ours=is_ours)
            if old is None
            else _widened(dialect, shape, column, old, is_ours=is_ours)
        )
        if statement is not None:
            statements.append(statement)
    if not is_ours:
        for column_found in _absent(dialect, shape, existing):
            if column_found.is_required:
                raise SinkError(
                    f"table {shape.name}: column {column_found.name} may not be null and has no "
                    "default, but is not in the frame; give it a default, or add it in the "
                    "transform"
                )
    return statements


def _added(dialect: Dialect, shape: TableShape, column: Column, *, is_ours: bool) -> str:
    declared = dialect.type_of(column, len(shape.key))
    statement = (
        f"ALTER TABLE {dialect.quote(shape.name)} ADD COLUMN "
        f"{dialect.quote(column.name)} {declared}"
    )
    if not is_ours:
        raise SinkError(
            f"table {shape.name} was not made by headrace and has no column {column.name}; "
            f"add it ({statement}), drop it in the transform, or choose another table"
            + ("; provenance=no leaves it out" if column.name.startswith("_") else "")
        )
    return statement


def _widened(
    dialect: Dialect, shape: TableShape, column: Column, old: ExistingColumn, *, is_ours: bool
) -> str | None:
    """The statement that makes the column wide enough; None if it is."""
    if old.kind is not None:
        if can_hold(old.kind, column.kind):
            return None
        # A key is a varchar where an index cannot take text of any length; and a table made by
        # others may limit its texts: the database says when one is too long.
        is_limited = old.kind.startswith("varchar(") and column.kind in ("string", "json")
        if is_limited and (column.is_key or not is_ours):
            return None
        if is_ours and can_hold(column.kind, old.kind):
            try:
                return dialect.alter_type(shape.name, column, len(shape.key))
            except NotImplementedError:
                pass
    raise SinkError(
        f"table {shape.name}: column {column.name} is {old.declared}, the frame's is "
        f"{column.kind}, which does not fit; cast it in the transform, or write to another table"
    )


def _check_key(dialect: Dialect, shape: TableShape, existing: ExistingTable) -> None:
    wanted = {_folded(dialect, column.name) for column in shape.key}
    keys = [{_folded(dialect, name) for name in key} for key in existing.unique_keys]
    if wanted not in keys:
        names = ", ".join(column.name for column in shape.key)
        has = " and ".join("(" + ", ".join(sorted(key)) + ")" for key in existing.unique_keys)
        raise SinkError(
            f"table {shape.name} has no unique index on the key ({names}) but on {has or 'nothing'}"
            f"; create one, correct the option key, or choose another table"
        )


def _absent(dialect: Dialect, shape: TableShape, existing: ExistingTable) -> list[ExistingColumn]:
    names = {_folded(dialect, column.name) for column in shape.columns}
    return [column for column in existing.columns if _folded(dialect, column.name) not in names]


def _folded(dialect: Dialect, name: str) -> str:
    return name.casefold() if dialect.folds_case else name


def _versions(dialect: Dialect, connection: Connection, table: str) -> list[tuple[int, str]]:
    cursor = connection.cursor()
    quote, place = dialect.quote, dialect.placeholder
    cursor.execute(
        f"SELECT {quote('version')}, {quote('columns')} FROM {quote(SCHEMA_TABLE.name)} "
        f"WHERE {quote('table_name')} = {place} ORDER BY {quote('version')}",
        (table,),
    )
    return [(int(version), str(columns)) for version, columns in cursor.fetchall()]


def _record(
    dialect: Dialect, connection: Connection, shape: TableShape, versions: list[tuple[int, str]]
) -> None:
    columns = json.dumps(
        [
            {"name": column.name, "type": column.kind, "key": column.is_key}
            for column in shape.columns
        ],
        ensure_ascii=False,
    )
    if versions and versions[-1][1] == columns:
        return
    version = versions[-1][0] + 1 if versions else 1
    connection.cursor().execute(
        dialect.insert_missing(SCHEMA_TABLE.name, [each.name for each in SCHEMA_TABLE.columns]),
        (shape.name, version, columns, now_text()),
    )
