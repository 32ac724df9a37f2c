"""One table during one run: each batch in one transaction with the row that says it was written.

That row, in `headrace_batches`, is changed first: it locks out an earlier attempt at the same
batch that still runs, and after a lost connection it tells whether the commit arrived.
"""

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headrace.errors import SinkError
from headrace.pipelines.definition import OpenSink, Run
from headrace.pipelines.sinks.sql.address import Address
from headrace.pipelines.sinks.sql.columns import Column, TableShape, columns_of
from headrace.pipelines.sinks.sql.dialect import Connection, dialect_of, transaction
from headrace.pipelines.sinks.sql.migration import SCHEMA_TABLE, migrate, now_text
from headrace.pipelines.sinks.sql.rows import (
    Changes,
    changes_of,
    check_key_lengths,
    fetch_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A server that restarts is back within these; then the run ends with a sentence.
RETRY_WAITS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
_NO_BATCH = -1

BATCHES_TABLE = TableShape(
    "headrace_batches",
    (
        Column("app", "string", is_key=True),
        # A pipeline may fill several tables of one database.
        Column("table_name", "string", is_key=True),
        Column("batch_id", "bigint"),
        Column("rows", "bigint"),
        Column("written_at", "timestamp"),
    ),
)

_Result = TypeVar("_Result")


class OpenSqlTable(OpenSink):
    """Holds one connection; opens another when it is lost."""

    def __init__(
        self, run: Run, address: Address, table: str, key: tuple[str, ...], has_provenance: bool
    ) -> None:
        self._app, self._tell = run.app_id, run.tell
        self._address, self._table, self._key = address, table, key
        self._has_provenance = has_provenance
        self._dialect = dialect_of(address)
        self._connection: Connection | None = None
        self._columns: tuple[Column, ...] = ()
        self._shape: TableShape | None = None
        self._told: set[str] = set()
        # A wrong address or password shows now, without a wait.
        self._attempt(self._prepare, waits=())

    def write(self, rows: "DataFrame", batch_id: int) -> bool:
        if self._attempt(self._last_batch) >= batch_id:
            return False
        columns = columns_of(rows.schema, self._key, has_provenance=self._has_provenance)
        changes = changes_of(fetch_rows(rows, columns), columns)
        self._tell_once(changes.notes)
        check_key_lengths(
            changes, columns, lambda column: self._dialect.key_limit(column, len(self._key))
        )
        return self.write_changes(changes, columns, batch_id)

    def write_changes(self, changes: Changes, columns: tuple[Column, ...], batch_id: int) -> bool:
        """Load what a batch changes; False if the database has it already."""
        attempts = 0

        def load(connection: Connection) -> bool:
            nonlocal attempts
            attempts += 1
            # What an attempt before this one committed is this call's own work.
            return self._load(connection, changes, columns, batch_id) or attempts > 1

        return self._attempt(load)

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(*self._dialect.errors):  # it may have been lost before
                connection.close()

    def _load(
        self,
        connection: Connection,
        changes: Changes,
        columns: tuple[Column, ...],
        batch_id: int,
    ) -> bool:
        if self._shape is None or self._columns != columns:
            self._shape = migrate(self._dialect, connection, self._table, columns)
            self._columns = columns
        with transaction(self._dialect, connection):
            if not self._claim(connection, batch_id, changes.row_count):
                return False
            if changes.upserts.num_rows:
                self._dialect.upsert(connection, self._shape, changes.upserts)
            if changes.deletes.num_rows:
                self._dialect.delete(connection, self._shape, changes.deletes)
        return True

    def _claim(self, connection: Connection, batch_id: int, row_count: int) -> bool:
        """Note the batch as written; False if it, or a later one, is."""
        quote, place = self._dialect.quote, self._dialect.placeholder
        cursor = connection.cursor()
        cursor.execute(
            f"UPDATE {quote(BATCHES_TABLE.name)} SET {quote('batch_id')} = {place}, "
            f"{quote('rows')} = {place}, {quote('written_at')} = {place} "
            f"WHERE {self._is_our_row()} AND {quote('batch_id')} < {place}",
            (batch_id, row_count, now_text(), self._app, self._table, batch_id),
        )
        return bool(cursor.rowcount)

    def _last_batch(self, connection: Connection) -> int:
        quote = self._dialect.quote
        cursor = connection.cursor()
        cursor.execute(
            f"SELECT {quote('batch_id')} FROM {quote(BATCHES_TABLE.name)} "
            f"WHERE {self._is_our_row()}",
            (self._app, self._table),
        )
        row = cursor.fetchone()
        if row is None:
            self._prepare(connection)
            return _NO_BATCH
        return int(row[0])

    def _is_our_row(self) -> str:
        quote, place = self._dialect.quote, self._dialect.placeholder
        return f"{quote('app')} = {place} AND {quote('table_name')} = {place}"

    def _prepare(self, connection: Connection) -> None:
        """Make headrace's own tables, and the row that is changed with each batch."""
        dialect = self._dialect
        with dialect.one_at_a_time(connection):
            for shape in (SCHEMA_TABLE, BATCHES_TABLE):
                if dialect.read_table(connection, shape.name) is None:
                    connection.cursor().execute(dialect.create_table(connection, shape))
            connection.cursor().execute(
                dialect.insert_missing(
                    BATCHES_TABLE.name, [column.name for column in BATCHES_TABLE.columns]
                ),
                (self._app, self._table, _NO_BATCH, 0, now_text()),
            )

    def _attempt(
        self,
        action: Callable[[Connection], _Result],
        waits: tuple[float, ...] | None = None,
    ) -> _Result:
        """Run `action` on a connection; again on a new one if what went wrong may pass."""
        for wait in (*(RETRY_WAITS_SECONDS if waits is None else waits), None):
            try:
                if self._connection is None:
                    self._connection = self._dialect.connect(self._address)
                return action(self._connection)
            except self._dialect.errors as error:
                fault = self._dialect.fault(error, self._address)
                self.close()
                # Another process may have altered the table meanwhile.
                self._shape = None
                if wait is None or not fault.is_transient:
                    raise SinkError(fault.sentence) from error
                self._tell(f"{fault.sentence} Trying again in {wait:g} s.")
                time.sleep(wait)
        raise AssertionError("the last round returns or raises")

    def _tell_once(self, notes: list[str]) -> None:
        for note in notes:
            column = note.partition(":")[0]
            if column not in self._told:
                self._told.add(column)
                self._tell(f"table {self._table}, {note}")
