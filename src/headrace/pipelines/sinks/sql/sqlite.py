"""SQLite: one file, one writer at a time, no server.

Rows go straight into the table with one prepared upsert: a temporary table would only be copied
within the same process. The write-ahead log lets readers read while a batch is written.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.pipelines.sinks.sql.address import Address
from headrace.pipelines.sinks.sql.columns import Column, TableShape, digits_of
from headrace.pipelines.sinks.sql.dialect import (
    Connection,
    DatabaseFault,
    Dialect,
)
from headrace.pipelines.sinks.sql.existing import ExistingColumn, ExistingTable, UniqueIndex

if TYPE_CHECKING:
    import pyarrow as pa

# How long a batch waits for another writer: longer than any batch takes.
BUSY_SECONDS = 60.0
# A REAL gives back every decimal of up to this many digits.
EXACT_DIGITS = 15
# A decimal without a fraction becomes one of SQLite's integers, which hold every one of these.
EXACT_INTEGER_DIGITS = 18
# Python objects of this many rows at a time, so that memory does not grow with the batch.
_CHUNK_ROWS = 20_000

_ERRORS_OF_ROWS = (sqlite3.IntegrityError, sqlite3.DataError)
_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "bigint": "INTEGER",
    "double": "DOUBLE",
    "string": "TEXT",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "json": "TEXT",
}
_KINDS = {
    "bool": "boolean",
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "integer": "bigint",
    "bigint": "bigint",
    "real": "double",
    "float": "double",
    "double": "double",
    "double precision": "double",
    "text": "string",
    "clob": "string",
    "varchar": "string",  # SQLite keeps any length
    "blob": "binary",
    "date": "date",
    "datetime": "timestamp",
    "timestamp": "timestamp",
}


class Sqlite(Dialect):
    """See the module."""

    name = "SQLite"
    placeholder = "?"
    begin = "BEGIN IMMEDIATE"  # a lock taken later could be refused in the middle
    folds_case = True
    errors = (sqlite3.Error,)

    def connect(self, address: Address) -> Connection:
        path = Path(address.database).expanduser()
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            # With a write-ahead log, NORMAL loses no committed batch when the process dies. When
            # the machine dies it may lose the newest ones, whole, but the checkpoint would not
            # know: so FULL.
            connection.execute("PRAGMA synchronous=FULL")
            # As in the other databases: SQLite looks at foreign keys only if asked to.
            connection.execute("PRAGMA foreign_keys=ON")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def fault(self, error: Exception, address: Address) -> DatabaseFault:
        text = str(error)
        if "unable to open" in text:
            path = Path(address.database).expanduser().absolute()
            why = "" if path.parent.is_dir() else f": there is no directory {path.parent}"
            return DatabaseFault(f"SQLite cannot open {path}{why}")
        if "locked" in text or "busy" in text:
            return DatabaseFault(
                f"another program has held {address.database} locked for {BUSY_SECONDS:.0f} s; "
                "end its transaction, then run again"
            )
        if "readonly" in text:
            return DatabaseFault(f"{address.database} may not be written; check its owner and mode")
        if "not a database" in text:
            return DatabaseFault(
                f"{address.database} is not a SQLite database; choose another file"
            )
        if "full" in text:
            return DatabaseFault(f"the disk of {address.database} is full")
        return DatabaseFault(
            f"SQLite refused what was written to {address.database}: {text}",
            broken_rule=text if isinstance(error, _ERRORS_OF_ROWS) else None,
        )

    def type_of(self, column: Column, key_count: int) -> str:
        if column.is_key and column.kind == "int" and key_count == 1:
            return "INTEGER"  # this word alone makes the key the row's own number
        if column.kind.startswith("decimal("):
            # Beyond that a number would be rounded; the word TEXT in the type keeps it text.
            is_exact = digits_of(column.kind)[0] <= EXACT_DIGITS
            return column.kind.upper() if is_exact else f"DECIMAL_TEXT{column.kind[7:]}"
        return _TYPES[column.kind]

    def loss(self, column: Column, declared: str) -> str | None:
        if not column.kind.startswith("decimal(") or _is_text(declared):
            return None
        precision, scale = digits_of(column.kind)
        if precision <= (EXACT_INTEGER_DIGITS if scale == 0 else EXACT_DIGITS):
            return None
        return (
            f"in which SQLite keeps numbers to {EXACT_DIGITS} digits only, whatever is declared: "
            f"those of the frame's {column.kind} would be rounded, and keys become one; make the "
            f"table anew with DECIMAL_TEXT({precision},{scale}), which SQLite keeps as text, cast "
            "the column to fewer digits in the transform, or write to another table"
        )

    def read_table(self, connection: Connection, table: str) -> ExistingTable | None:
        made = connection.execute(
            "SELECT type, sql FROM sqlite_master "
            "WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')",
            (table,),
        ).fetchone()
        if made is None:
            return None
        # Unlike table_info, this has the generated columns too.
        rows = connection.execute("SELECT * FROM pragma_table_xinfo(?)", (table,)).fetchall()
        indexes = connection.execute("SELECT * FROM pragma_index_list(?)", (table,)).fetchall()
        unique = [
            _unique_index(connection, name, bool(is_partial))
            for _, name, is_unique, _, is_partial in indexes
            if is_unique
        ]
        keys = [name for _, name, _, _, _, place, _ in rows if place]
        # INTEGER PRIMARY KEY is the row's own number and has no index.
        is_own_number = bool(keys) and not any(origin == "pk" for *_, origin, _ in indexes)
        if is_own_number:
            unique.append(UniqueIndex("PRIMARY KEY", frozenset(keys), frozenset(keys)))
        columns = tuple(
            ExistingColumn(
                name,
                declared,
                _kind_of(declared),
                is_required=bool(not_null and default is None and not hidden),
                is_generated=bool(hidden),
                is_distinct_by_default=default in (None, "NULL") and not hidden,
            )
            for _, name, declared, not_null, default, _, hidden in rows
        )
        return ExistingTable(columns, tuple(unique), _obstacle(*made))

    def alter_type(self, table: str, column: Column, key_count: int) -> str | None:
        if column.kind.startswith("decimal(") and "TEXT" in self.type_of(column, key_count):
            raise NotImplementedError
        return None  # a value has a type of its own here; the column's is a hint

    def insert_missing(self, table: str, columns: Sequence[str]) -> str:
        places = ", ".join("?" for _ in columns)
        names = ", ".join(map(self.quote, columns))
        return f"INSERT INTO {self.quote(table)} ({names}) VALUES ({places}) ON CONFLICT DO NOTHING"

    def defer_rules(self, connection: Connection) -> None:
        # Rows come in the order of their keys, each by a statement: a child may be before its
        # parent. This way foreign keys speak at COMMIT, until which it lasts.
        connection.execute("PRAGMA defer_foreign_keys=ON")

    def upsert(self, connection: Connection, shape: TableShape, rows: "pa.Table") -> int | None:
        places = ", ".join("?" for _ in shape.columns)
        # OR ABORT: a constraint may say ON CONFLICT IGNORE or REPLACE, by which rows vanish.
        statement = (
            f"INSERT OR ABORT INTO {self.quote(shape.name)} ({self.names(shape.columns)}) "
            f"VALUES ({places}) {self.on_conflict(shape)}"
        )
        done = _execute_many(connection, statement, rows, shape.columns)
        # Of a table that is all key, rows that are there are not written.
        return done if shape.others else None

    def delete(self, connection: Connection, shape: TableShape, keys: "pa.Table") -> None:
        # The column may have a collation of its own; the key's index has this one.
        wanted = " AND ".join(f"{self.quote(c.name)} = ? COLLATE BINARY" for c in shape.key)
        statement = f"DELETE FROM {self.quote(shape.name)} WHERE {wanted}"
        _execute_many(connection, statement, keys, shape.key)


def _execute_many(
    connection: Connection, statement: str, rows: "pa.Table", columns: Sequence[Column]
) -> int:
    done = 0
    with contextlib.closing(connection.cursor()) as cursor:
        for start in range(0, rows.num_rows, _CHUNK_ROWS):
            cursor.executemany(statement, _tuples(rows.slice(start, _CHUNK_ROWS), columns))
            done += cursor.rowcount
    return done


def _unique_index(connection: Connection, name: str, is_partial: bool) -> UniqueIndex:
    found = connection.execute(
        "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key", (name,)
    ).fetchall()
    columns = [column for column, _ in found if column is not None]
    inexact = [(column, rule) for column, rule in found if column and rule != "BINARY"]
    flaw = None
    if inexact:
        column, rule = inexact[0]
        flaw = (
            f"takes values of {column} that differ for one key (COLLATE {rule}); SQLite cannot "
            f"change that: make the table anew without COLLATE {rule}, or choose another table"
        )
    elif is_partial:
        flaw = "is partial, and no row can be found by it; create one without WHERE"
    return UniqueIndex(
        name,
        frozenset(columns) - {column for column, _ in inexact},
        frozenset(columns) if len(columns) == len(found) else None,
        flaw,
    )


def _obstacle(kind: str, statement: str) -> str | None:
    if kind == "view":
        return "is a view, which cannot be written by key; name the table behind it"
    if re.match(r"(?i)\s*CREATE\s+VIRTUAL", statement):
        return "is a virtual table, which cannot be written by key; choose another table"
    return None


def _tuples(rows: "pa.Table", columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    import pyarrow as pa

    values = []
    for array, column in zip(rows.columns, columns, strict=True):
        if column.kind in ("date", "timestamp"):
            array = array.cast(pa.string())
        scale = _text_scale(column)
        if scale is not None:
            values.append([_plain(number, scale) for number in array.to_pylist()])
        else:
            values.append(array.to_pylist())
    return zip(*values, strict=True)


def _text_scale(column: Column) -> int | None:
    """The digits after the point of a number that is given as text; None: it is no such number.

    A column of text compares texts: one number is one text there, whatever the frame's digits.
    """
    if column.declared is not None and _is_text(column.declared):
        kind = _kind_of(column.declared) or ""
        return digits_of(kind)[1] if kind.startswith("decimal(") else None
    return digits_of(column.kind)[1] if column.kind.startswith("decimal(") else None


def _plain(number: Decimal | int | None, scale: int) -> str | None:
    return None if number is None else format(Decimal(number), f".{scale}f")


def _is_text(declared: str) -> bool:
    """Whether a number in such a column stays the text that it is given as."""
    return "TEXT" in declared.upper()


def _kind_of(declared: str) -> str | None:
    word = declared.lower()
    digits = re.search(r"\((\d+)(?:\s*,\s*(\d+))?\)", word)
    word = word.partition("(")[0].strip()
    if word in ("decimal", "numeric", "decimal_text"):
        return f"decimal({digits[1]},{digits[2] or 0})" if digits else None
    return _KINDS.get(word)
