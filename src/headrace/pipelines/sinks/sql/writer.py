"""One table during one run: each batch in one transaction with the row that says it was written.

That row, in `headrace_batches`, has the records that were written. It is changed first, and only if
nobody changed it since it was read: an earlier attempt that still runs is locked out by it, and
after a lost connection it tells whether the commit arrived.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from headrace.pipelines.definition import OpenSink, Run
from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql.address import Address
from headrace.pipelines.sinks.sql.columns import Column, TableShape, columns_of
from headrace.pipelines.sinks.sql.dialect import Connection, DatabaseFault, transaction
from headrace.pipelines.sinks.sql.dialects import dialect_of
from headrace.pipelines.sinks.sql.existing import check_key
from headrace.pipelines.sinks.sql.migration import SCHEMA_TABLE, migrate, now_text
from headrace.pipelines.sinks.sql.row_faults import write_in_parts
from headrace.pipelines.sinks.sql.rows import Changes, changes_of, fetch_rows
from headrace.pipelines.spans import NO_BATCH, Batch, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A server that restarts is back within these; then the run ends with a sentence.
RETRY_WAITS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)

_SAVEPOINT = "headrace_part"

BATCHES_TABLE = TableShape(
    "headrace_batches",
    (
        Column("app", "string", is_key=True),
        # A pipeline may fill several tables of one database.
        Column("table_name", "string", is_key=True),
        Column("batch_id", "bigint"),
        Column("rows", "bigint"),
        Column("written_at", "timestamp"),
        # Null in a row of an earlier version, which has only the batch's number.
        Column("written", "string"),
        # One more at each change: a row is changed by whoever read it last.
        Column("revision", "bigint"),
    ),
)

_Result = TypeVar("_Result")


class WrittenMeanwhileError(SinkError):
    """Another attempt wrote a part of the batch; what is left is for the next try."""

    is_retriable = True


@dataclass(frozen=True, slots=True)
class _Note:
    """This app's row in `headrace_batches`."""

    written: Written
    revision: int


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
        try:
            self._attempt(self._prepare, waits=())
        except SinkError:
            self.close()  # nobody else will: there is no sink
            raise

    def written(self) -> Written:
        """What the row of this app says."""
        return self._attempt(self._read_note).written

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Bring the rows over and load them."""
        columns = columns_of(rows.schema, self._key, has_provenance=self._has_provenance)
        changes = changes_of(
            fetch_rows(rows, columns),
            columns,
            lambda column: self._dialect.key_limit(column, len(self._key)),
        )
        for column, note in changes.notes.items():
            self._tell_once(f"column {column}", note)
        return self.write_changes(changes, columns, batch)

    def write_changes(self, changes: Changes, columns: tuple[Column, ...], batch: Batch) -> bool:
        """Load what a batch changes; False if the database has it already."""
        attempts = 0

        def load(connection: Connection) -> bool:
            nonlocal attempts
            attempts += 1
            # What an attempt before this one committed is this call's own work.
            return self._load(connection, changes, columns, batch) or attempts > 1

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
        batch: Batch,
    ) -> bool:
        if self._shape is None or self._columns != columns:
            self._shape = migrate(self._dialect, connection, self._table, columns)
            self._columns = columns
        note = self._read_note(connection)
        while self._is_left(note, batch):
            try:
                with transaction(self._dialect, connection):
                    is_ours = self._claim(connection, note, batch, changes.row_count)
                    if is_ours:
                        self._dialect.defer_rules(connection)
                        self._apply(connection, self._shape, changes)
            except self._dialect.errors as error:
                fault = self._dialect.fault(error, self._address)
                if fault.broken_rule is None:
                    raise
                is_ours = self._load_in_parts(connection, changes, columns, batch, note, fault)
            if is_ours:
                return True
            note = self._read_note(connection)
        return False

    def _load_in_parts(
        self,
        connection: Connection,
        changes: Changes,
        columns: tuple[Column, ...],
        batch: Batch,
        note: _Note,
        fault: DatabaseFault,
    ) -> bool:
        """Load what was refused as a whole; False if somebody changed the note meanwhile."""
        # The table may have been altered since it was looked at: that has its own sentence.
        shape = migrate(self._dialect, connection, self._table, columns)

        def attempt(some: Changes) -> str | None:
            return self._try(connection, shape, some)

        with transaction(self._dialect, connection):
            is_ours = self._claim(connection, note, batch, changes.row_count)
            if is_ours:
                write_in_parts(self._table, changes, attempt, fault.sentence)
        return is_ours

    def _is_left(self, note: _Note, batch: Batch) -> bool:
        left = note.written.left_of(batch)
        if left is not None and left is not batch:
            raise WrittenMeanwhileError(
                f"another attempt has written a part of batch {batch.number} to table "
                f"{self._table}; does another run use the same checkpoint?"
            )
        return left is not None

    def _apply(self, connection: Connection, shape: TableShape, changes: Changes) -> None:
        if changes.upserts.num_rows:
            written = self._dialect.upsert(connection, shape, changes.upserts)
            if written is not None and written < changes.upserts.num_rows:
                missing = changes.upserts.num_rows - written
                self._tell_once(
                    "trigger",
                    f"rows swallowed by a trigger of the table: {missing} of "
                    f"{changes.upserts.num_rows} in this batch",
                )
        if changes.deletes.num_rows:
            self._dialect.delete(connection, shape, changes.deletes)

    def _try(self, connection: Connection, shape: TableShape, changes: Changes) -> str | None:
        """Add these to the transaction; if they are refused, undo just them and say why."""
        cursor = connection.cursor()
        cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
        try:
            self._apply(connection, shape, changes)
        except self._dialect.errors as error:
            rule = self._dialect.fault(error, self._address).broken_rule
            if rule is None:
                raise
            cursor.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            return f"{self._dialect.name} refused the row: {rule}"
        cursor.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
        return None

    def _claim(self, connection: Connection, note: _Note, batch: Batch, row_count: int) -> bool:
        """Note the batch as written; False if somebody changed the note meanwhile."""
        written = note.written.after(batch)
        changed = {
            "batch_id": batch.number,
            "rows": row_count,
            "written_at": now_text(),
            "written": written.to_json(),
            "revision": note.revision + 1,
        }
        quote, place = self._dialect.quote, self._dialect.placeholder
        sets = ", ".join(f"{quote(name)} = {place}" for name in changed)
        cursor = connection.cursor()
        cursor.execute(
            f"UPDATE {quote(BATCHES_TABLE.name)} SET {sets} "
            f"WHERE {self._is_our_row()} AND COALESCE({quote('revision')}, 0) = {place} "
            f"AND {quote('batch_id')} = {place}",
            (*changed.values(), self._app, self._table, note.revision, note.written.last_batch),
        )
        return bool(cursor.rowcount)

    def _read_note(self, connection: Connection) -> _Note:
        quote = self._dialect.quote
        names = ", ".join(map(quote, ("batch_id", "written", "revision")))
        cursor = connection.cursor()
        cursor.execute(
            f"SELECT {names} FROM {quote(BATCHES_TABLE.name)} WHERE {self._is_our_row()}",
            (self._app, self._table),
        )
        row = cursor.fetchone()
        if row is None:
            self._prepare(connection)
            return _Note(Written(), 0)
        last_batch, text, revision = row
        written = Written.former(int(last_batch)) if text is None else Written.from_json(text)
        if written.last_batch != last_batch:
            # A headrace of before has written since, which notes nothing but the number.
            written = Written.former(int(last_batch))
        return _Note(written, revision or 0)

    def _is_our_row(self) -> str:
        quote, place = self._dialect.quote, self._dialect.placeholder
        return f"{quote('app')} = {place} AND {quote('table_name')} = {place}"

    def _prepare(self, connection: Connection) -> None:
        """Make headrace's own tables, and the row that is changed with each batch."""
        dialect = self._dialect
        dialect.check_name("table", self._table)
        with dialect.one_at_a_time(connection):
            for shape in (SCHEMA_TABLE, BATCHES_TABLE):
                for statement in self._missing(connection, shape):
                    connection.cursor().execute(statement)
            table = dialect.read_table(connection, self._table)
            if table is not None:
                check_key(self._table, self._key, table, dialect.fold)
            connection.cursor().execute(
                dialect.insert_missing(
                    BATCHES_TABLE.name, [column.name for column in BATCHES_TABLE.columns]
                ),
                (self._app, self._table, NO_BATCH, 0, now_text(), None, 0),
            )

    def _missing(self, connection: Connection, shape: TableShape) -> list[str]:
        """The statements that make one of headrace's own tables, or bring it up to date."""
        table = self._dialect.read_table(connection, shape.name)
        if table is None:
            return [self._dialect.create_table(connection, shape)]
        names = {column.name for column in table.columns}
        return [
            self._dialect.add_column(shape, column)
            for column in shape.columns
            if column.name not in names
        ]

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

    def _tell_once(self, what: str, note: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._tell(f"table {self._table}, {note}")
