"""A table is made to fit the frames that go into it: created, given columns, widened; or refused.

What the database says about the table is what counts. `headrace_schema` tells its history, and
that a table is ours: one that is not there was made by others and is never altered.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql.columns import Column, TableShape, can_hold
from headrace.pipelines.sinks.sql.dialect import Connection, Dialect
from headrace.pipelines.sinks.sql.existing import (
    ExistingColumn,
    ExistingTable,
    check_columns,
    check_key,
    check_other_indexes,
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
    for column in columns:
        dialect.check_name("column", column.name)
    with dialect.one_at_a_time(connection):
        existing = dialect.read_table(connection, table)
        versions = _versions(dialect, connection, table)
        cursor = connection.cursor()
        if existing is None:
            cursor.execute(dialect.create_table(connection, shape))
        else:
            check_key(table, (column.name for column in shape.key), existing, dialect.fold)
            statements = _statements(dialect, shape, existing, is_ours=bool(versions))
            check_columns(shape, existing, dialect.fold)
            check_other_indexes(shape, existing, dialect.fold)
            for statement in statements:
                cursor.execute(statement)
            if not versions:
                return _as_declared(dialect, shape, existing)
            if statements:
                existing = dialect.read_table(connection, table)
        _record(dialect, connection, shape, versions)
    return shape if existing is None else _as_declared(dialect, shape, existing)


def _as_declared(dialect: Dialect, shape: TableShape, existing: ExistingTable) -> TableShape:
    """The shape with what its columns are in the table, for `Dialect.upsert` and `delete`."""
    found = {dialect.fold(column.name): column for column in existing.columns}
    columns = []
    for column in shape.columns:
        old = found[dialect.fold(column.name)]
        columns.append(replace(column, declared=old.declared, replaces_null=old.replaces_null))
    return TableShape(shape.name, tuple(columns))


def _statements(
    dialect: Dialect, shape: TableShape, existing: ExistingTable, *, is_ours: bool
) -> list[str]:
    found = {dialect.fold(column.name): column for column in existing.columns}
    statements = []
    for column in shape.columns:
        old = found.get(dialect.fold(column.name))
        statement = (
            _added(dialect, shape, column, is_ours=is_ours)
            if old is None
            else _widened(dialect, shape, column, old, is_ours=is_ours)
        )
        if statement is not None:
            statements.append(statement)
    return statements


def _added(dialect: Dialect, shape: TableShape, column: Column, *, is_ours: bool) -> str:
    statement = dialect.add_column(shape, column)
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
    if old.is_generated:
        return None  # it takes no value, of whatever type
    if old.kind is not None:
        if can_hold(old.kind, column.kind):
            if loss := dialect.loss(column, old.declared):
                raise SinkError(
                    f"table {shape.name}: column {column.name} is {old.declared}, {loss}"
                )
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
    if old.kind is None:
        raise SinkError(
            f"table {shape.name}: column {column.name} is {old.declared}, which no frame has; "
            "change the column's type, drop it in the transform, or write to another table"
        )
    raise SinkError(
        f"table {shape.name}: column {column.name} is {old.declared}, the frame's is "
        f"{column.kind}, which does not fit; cast it in the transform, or write to another table"
    )


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
