"""PostgreSQL: COPY into a temporary table, then one INSERT … ON CONFLICT.

The temporary table has the target's own types and is gone at the end of the transaction. Only
varchar(n) is text there: whatever comes into such a column loses its last blanks without a word.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.installing import how_to_install
from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql.address import Address
from headrace.pipelines.sinks.sql.columns import Column, TableShape
from headrace.pipelines.sinks.sql.dialect import (
    Connection,
    DatabaseFault,
    Dialect,
    transaction,
)
from headrace.pipelines.sinks.sql.existing import ExistingTable
from headrace.pipelines.sinks.sql.postgresql_catalog import read_table

try:
    import psycopg
except ImportError:
    raise SinkError(
        f"PostgreSQL needs the package psycopg: {how_to_install('spark', 'psycopg')}"
    ) from None

if TYPE_CHECKING:
    import pyarrow as pa

CONNECT_SECONDS = 10
# PostgreSQL cuts longer names off without a word.
MAX_NAME_BYTES = 63
# Room in each page for new versions of its rows: an update then leaves the index alone.
FILL_PERCENT = 70
# Of the load table: rows of earlier parts that every part reads over before it is cut. A cut costs
# more the more there were in the transaction, so not every part makes one.
MAX_DEAD_BYTES = 128 * 1024
_LOAD_TABLE = "headrace_load"
# Any number, the same in every headrace: it names the lock.
_LOCK_NUMBER = 0x6865616472616365 & 0x7FFF_FFFF

_TYPES = {
    "boolean": "boolean",
    "int": "integer",
    "bigint": "bigint",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "json": "text",
}
# What passes: connections (08), resources (53), the server going down or coming up (57P),
# serialization and deadlock (40).
_TRANSIENT_STATES = ("08", "53", "57P", "40")
# What a row may do wrong: its values (22), a constraint (23), an index that cannot take it (54000),
# a trigger that raises (P0001).
_STATES_OF_ROWS = ("22", "23", "54000", "P0001")


class Postgresql(Dialect):
    """See the module."""

    name = "PostgreSQL"
    # A deferred constraint would speak at COMMIT, when nobody can tell which row it means.
    begin = "BEGIN; SET CONSTRAINTS ALL IMMEDIATE"
    errors = (psycopg.Error, OSError)

    def connect(self, address: Address) -> Connection:
        settings: dict[str, Any] = {
            name: address.settings[name]
            for name in ("sslmode", "sslrootcert")
            if name in address.settings
        }
        connection: Connection = psycopg.connect(
            host=address.host,
            port=address.port,
            user=address.user or None,
            password=address.find_password(),
            dbname=address.database,
            connect_timeout=CONNECT_SECONDS,
            application_name="headrace",
            autocommit=True,
            **settings,
        )
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute("SET client_min_messages = error")
        if "schema" in address.settings:
            connection.execute(f"SET search_path = {self.quote(address.settings['schema'])}")
        return connection

    def fault(self, error: Exception, address: Address) -> DatabaseFault:
        place = f"PostgreSQL at {address.host}:{address.port}"
        state = getattr(error, "sqlstate", None) or ""
        text = _first_line(error)
        if state == "28P01" or "password authentication failed" in text or "no password" in text:
            return DatabaseFault(
                f"{place} does not take the password of user {address.user}; give it in the URL, "
                "by ?password-file=PATH or in PGPASSWORD"
            )
        if state == "3D000" or re.search(r'database ".*" does not exist', text):
            return DatabaseFault(
                f"{place} has no database {address.database}; create it: "
                f"createdb -h {address.host} -p {address.port} {address.database}"
            )
        if state == "3F000":
            return DatabaseFault(f"{place}: {text}; create the schema, or correct ?schema=")
        if state == "42501":
            return DatabaseFault(
                f"user {address.user} may not do this in {address}: {text}; GRANT it"
            )
        if state.startswith(_TRANSIENT_STATES) or (
            not state and isinstance(error, (psycopg.OperationalError, OSError))
        ):
            is_down = "refused" in text or "resolve" in text or "timeout" in text
            why = "no server answers" if is_down else text
            return DatabaseFault(f"{place}: {why}; is it running?", is_transient=True)
        broken_rule = text if state.startswith(_STATES_OF_ROWS) else None
        return DatabaseFault(f"{place} refused the rows: {text}", broken_rule=broken_rule)

    def check_name(self, what: str, name: str) -> None:
        size = len(name.encode())
        if size > MAX_NAME_BYTES:
            raise SinkError(
                f"{what} {name} has a name of {size} bytes; PostgreSQL's longest has "
                f"{MAX_NAME_BYTES}: "
                + ("rename it in the transform" if what == "column" else "choose a shorter one")
            )

    def type_of(self, column: Column, key_count: int) -> str:
        if column.kind.startswith("decimal("):
            return f"numeric{column.kind[7:]}"
        return _TYPES[column.kind]

    def table_suffix(self, connection: Connection) -> str:
        return f" WITH (fillfactor = {FILL_PERCENT})"

    def read_table(self, connection: Connection, table: str) -> ExistingTable | None:
        return read_table(connection, table, self.quote)

    def alter_type(self, table: str, column: Column, key_count: int) -> str | None:
        name, declared = self.quote(column.name), self.type_of(column, key_count)
        return f"ALTER TABLE {self.quote(table)} ALTER COLUMN {name} TYPE {declared}"

    def insert_missing(self, table: str, columns: Sequence[str]) -> str:
        places = ", ".join("%s" for _ in columns)
        names = ", ".join(map(self.quote, columns))
        return f"INSERT INTO {self.quote(table)} ({names}) VALUES ({places}) ON CONFLICT DO NOTHING"

    @contextmanager
    def one_at_a_time(self, connection: Connection) -> Iterator[None]:
        with transaction(self, connection):
            connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})")
            yield

    def upsert(self, connection: Connection, shape: TableShape, rows: "pa.Table") -> int | None:
        load_table = self._load(connection, shape, shape.columns, rows, _LOAD_TABLE)
        names = self.names(shape.columns)
        done = connection.execute(
            f"INSERT INTO {self.quote(shape.name)} ({names}) "
            f"SELECT {names} FROM {load_table} {self.on_conflict(shape)}"
        )
        self._cut(connection, load_table)
        # Of a table that is all key, rows that are there are not written.
        return int(done.rowcount) if shape.others else None

    def delete(self, connection: Connection, shape: TableShape, keys: "pa.Table") -> None:
        load_table = self._load(connection, shape, shape.key, keys, f"{_LOAD_TABLE}_keys")
        same = " AND ".join(
            f"target.{self.quote(c.name)} = gone.{self.quote(c.name)}" for c in shape.key
        )
        connection.execute(
            f"DELETE FROM {self.quote(shape.name)} AS target "
            f"USING {load_table} AS gone WHERE {same}"
        )
        self._cut(connection, load_table)

    def _load(
        self,
        connection: Connection,
        shape: TableShape,
        columns: Sequence[Column],
        rows: "pa.Table",
        name: str,
    ) -> str:
        from headrace.pipelines.sinks.sql.text_rows import text_of

        load_table, names = f"pg_temp.{self.quote(name)}", self.names(columns)
        limited = [column for column in columns if _is_limited(column)]
        selected = ", ".join(
            f"{self.quote(c.name)}::text AS {self.quote(c.name)}"
            if c in limited
            else self.quote(c.name)
            for c in columns
        )
        # It may be there already: a transaction can have several parts. Dropped and made anew, it
        # would need a lock for each of them.
        connection.execute(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {self.quote(name)} ON COMMIT DROP AS "
            f"SELECT {selected} FROM {self.quote(shape.name)} WITH NO DATA"
        )
        connection.execute(f"DELETE FROM {load_table}")
        with connection.cursor().copy(f"COPY {load_table} ({names}) FROM STDIN") as copy:
            for piece in text_of(rows, binary_prefix="\\\\x"):
                copy.write(piece)
        for column in limited:
            self._check_length(connection, load_table, column)
        return load_table

    def _cut(self, connection: Connection, load_table: str) -> None:
        """Clear a load table that has grown, once its rows are taken: of a part that is refused a
        cut would be undone too."""
        asked = connection.execute("SELECT pg_relation_size(%s::regclass)", (load_table,))
        if asked.fetchone()[0] > MAX_DEAD_BYTES:
            connection.execute(f"TRUNCATE {load_table}")

    def _check_length(self, connection: Connection, load_table: str, column: Column) -> None:
        name = self.quote(column.name)
        # The database counts: characters, or bytes where its encoding is SQL_ASCII.
        found = connection.execute(
            f"SELECT EXISTS (SELECT FROM {load_table} "
            f'WHERE {name}::{column.declared}::text COLLATE "C" <> {name} COLLATE "C")'
        ).fetchone()
        if found[0]:
            raise psycopg.errors.StringDataRightTruncation(
                f"value too long for type {column.declared} of column {column.name}"
            )


def _is_limited(column: Column) -> bool:
    return column.declared is not None and column.declared.startswith("character varying(")


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    # libpq puts the address before the reason, and says it for each address it tried.
    return text.rpartition("failed: ")[2].removeprefix("FATAL:  ")
