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
from headrace.pipelines.sinks.sql.columns import Column, TableShape
from headrace.pipelines.sinks.sql.dialect import (
    Connection,
    Dialect,
    ExistingColumn,
    ExistingTable,
    Fault,
)

if TYPE_CHECKING:
    import pyarrow as pa

# How long a batch waits for another writer: longer than any batch takes.
BUSY_SECONDS = 60.0
# A REAL gives back every decimal of up to this many digits.
EXACT_DIGITS = 15
# Python objects of this many rows at a time, so that memory does not grow with the batch.
_CHUNK_ROWS = 20_000

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
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def fault(self, error: Exception, address: Address) -> Fault:
        text = str(error)
        if "unable to open" in text:
            path = Path(address.database).expanduser().absolute()
            why = "" if path.parent.is_dir() else f": there is no directory {path.parent}"
            return Fault(f"SQLite cannot open {path}{why}")
        if "locked" in text or "busy" in text:
            return Fault(
                f"another program has held {address.database} locked for {BUSY_SECONDS:.0f} s; "
                "end its transaction, then run again"
            )
        if "readonly" in text:
            return Fault(f"{address.database} may not be written; check its owner and mode")
        if "not a database" in text:
            return Fault(f"{address.database} is not a SQLite database; choose another file")
        if "full" in text:
            return Fault(f"the disk of {address.database} is full")
        return Fault(f"SQLite refused what was written to {address.database}: {text}")

    def type_of(self, column: Column, key_count: int) -> str:
        if column.is_key and column.kind == "int" and key_count == 1:
            return "INTEGER"  # this word alone makes the key the row's own number
        if column.kind.startswith("decimal("):
            # Beyond that a number would be rounded; the word TEXT in the type keeps it text.
            is_exact = int(column.kind[8:].split(",")[0]) <= EXACT_DIGITS
            return column.kind.upper() if is_exact else f"DECIMAL_TEXT{column.kind[7:]}"
        return _TYPES[column.kind]

    def read_table(self, connection: Connection, table: str) -> ExistingTable | None:
        rows = connection.execute("SELECT * FROM pragma_table_info(?)", (table,)).fetchall()
        if not rows:
            return None
        columns = tuple(
            ExistingColumn(name, declared, _kind_of(declared), bool(not_null and default is None))
            for _, name, declared, not_null, default, _ in rows
        )
        keys = [frozenset(row[1] for row in rows if row[5])]
        indexes = connection.execute(
            'SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial', (table,)
        )
        for (index,) in indexes.fetchall():
            found = connection.execute("SELECT name FROM pragma_index_info(?)", (index,))
            keys.append(frozenset(name for (name,) in found))
        return ExistingTable(columns, tuple(key for key in keys if key))

    def alter_type(self, table: str, column: Column, key_count: int) -> str | None:
        if column.kind.startswith("decimal(") and "TEXT" in self.type_of(column, key_count):
            raise NotImplementedError
        return None  # a value has a type of its own here; the column's is a hint

    def insert_missing(self, table: str, columns: Sequence[str]) -> str:
        places = ", ".join("?" for _ in columns)
        names = ", ".join(map(self.quote, columns))
        return f"INSERT INTO {self.quote(table)} ({names}) VALUES ({places}) ON CONFLICT DO NOTHING"

    def upsert(self, connection: Connection, shape: TableShape, rows: "pa.Table") -> None:
        places = ", ".join("?" for _ in shape.columns)
        statement = (
            f"INSERT INTO {self.quote(shape.name)} ({self.names(shape.columns)}) "
            f"VALUES ({places}) {self.on_conflict(shape)}"
        )
        _execute_many(connection, statement, rows, shape.columns)

    def delete(self, connection: Connection, shape: TableShape, keys: "pa.Table") -> None:
        wanted = " AND ".join(f"{self.quote(column.name)} = ?" for column in shape.key)
        statement = f"DELETE FROM {self.quote(shape.name)} WHERE {wanted}"
        _execute_many(connection, statement, keys, shape.key)


def _execute_many(
    connection: Connection, statement: str, rows: "pa.Table", columns: Sequence[Column]
) -> None:
    with contextlib.closing(connection.cursor()) as cursor:
        for start in range(0, rows.num_rows, _CHUNK_ROWS):
            cursor.executemany(statement, _tuples(rows.slice(start, _CHUNK_ROWS), columns))


def _tuples(rows: "pa.Table", columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    import pyarrow as pa

    values = []
    for array, column in zip(rows.columns, columns, strict=True):
        if column.kind in ("date", "timestamp"):
            array = array.cast(pa.string())
        if column.kind.startswith("decimal("):
            values.append([_plain(number) for number in array.to_pylist()])
        else:
            values.append(array.to_pylist())
    return zip(*values, strict=True)


def _plain(number: Decimal | None) -> str | None:
    return None if number is None else format(number, "f")


def _kind_of(declared: str) -> str | None:
    word = declared.lower()
    digits = re.search(r"\((\d+)(?:\s*,\s*(\d+))?\)", word)
    word = word.partition("(")[0].strip()
    if word in ("decimal", "numeric", "decimal_text"):
        return f"decimal({digits[1]},{digits[2] or 0})" if digits else None
    return _KINDS.get(word)
