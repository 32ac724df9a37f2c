"""PostgreSQL: COPY into a temporary table, then one INSERT … ON CONFLICT.

The temporary table has the target's own types and is gone at the end of the transaction.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.errors import SinkError
from headrace.pipelines.sinks.sql.address import Address
from headrace.pipelines.sinks.sql.columns import Column, TableShape
from headrace.pipelines.sinks.sql.dialect import (
    Connection,
    Dialect,
    ExistingColumn,
    ExistingTable,
    Fault,
    transaction,
)

try:
    import psycopg
except ImportError:
    raise SinkError("PostgreSQL needs the package psycopg: pip install 'headrace[spark]'") from None

if TYPE_CHECKING:
    import pyarrow as pa

CONNECT_SECONDS = 10
# PostgreSQL cuts longer names off without a word.
MAX_NAME_BYTES = 63
# Room in each page for new versions of its rows: an update then leaves the index alone.
FILL_PERCENT = 70
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
_KINDS = {
    **{declared: kind for kind, declared in _TYPES.items() if kind != "json"},
    "smallint": "smallint",
    "real": "float",
    # The session's zone is UTC, so text without a zone means the same in both.
    "timestamp without time zone": "timestamp",
    "json": "json",
    "jsonb": "json",
}
# What passes: connections (08), resources (53), the server going down or coming up (57P),
# serialization and deadlock (40).
_TRANSIENT_STATES = ("08", "53", "57P", "40")
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod),
       attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum"""
_UNIQUE_KEYS = """
SELECT array_agg(attname::text)
FROM pg_index
JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)
WHERE indrelid = to_regclass(%s) AND indisunique AND indisvalid
  AND indpred IS NULL AND indexprs IS NULL
GROUP BY indexrelid"""


class Postgresql(Dialect):
    """See the module."""

    name = "PostgreSQL"
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

    def fault(self, error: Exception, address: Address) -> Fault:
        place = f"PostgreSQL at {address.host}:{address.port}"
        state = getattr(error, "sqlstate", None) or ""
        text = _first_line(error)
        if state == "28P01" or "password authentication failed" in text or "no password" in text:
            return Fault(
                f"{place} does not take the password of user {address.user}; give it in the URL, "
                "by ?password-file=PATH or in PGPASSWORD"
            )
        if state == "3D000" or re.search(r'database ".*" does not exist', text):
            return Fault(
                f"{place} has no database {address.database}; create it: "
                f"createdb -h {address.host} -p {address.port} {address.database}"
            )
        if state == "3F000":
            return Fault(f"{place}: {text}; create the schema, or correct ?schema=")
        if state == "42501":
            return Fault(f"user {address.user} may not do this in {address}: {text}; GRANT it")
        if state.startswith(_TRANSIENT_STATES) or (
            not state and isinstance(error, (psycopg.OperationalError, OSError))
        ):
            is_down = "refused" in text or "resolve" in text or "timeout" in text
            why = "no server answers" if is_down else text
            return Fault(f"{place}: {why}; is it running?", is_transient=True)
        return Fault(f"{place} refused the rows: {text}")

    def type_of(self, column: Column, key_count: int) -> str:
        if column.kind.startswith("decimal("):
            return f"numeric{column.kind[7:]}"
        return _TYPES[column.kind]

    def table_suffix(self, connection: Connection) -> str:
        return f" WITH (fillfactor = {FILL_PERCENT})"

    def read_table(self, connection: Connection, table: str) -> ExistingTable | None:
        if len(table.encode()) > MAX_NAME_BYTES:
            raise SinkError(
                f"{table} has more than PostgreSQL's {MAX_NAME_BYTES} bytes for a name; "
                "choose a shorter one with the option table"
            )
        name = self.quote(table)
        columns = tuple(
            ExistingColumn(column, declared, _kind_of(declared), is_required)
            for column, declared, is_required in connection.execute(_COLUMNS, (name,)).fetchall()
        )
        if not columns:
            return None
        keys = connection.execute(_UNIQUE_KEYS, (name,)).fetchall()
        return ExistingTable(columns, tuple(frozenset(names) for (names,) in keys))

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

    def upsert(self, connection: Connection, shape: TableShape, rows: "pa.Table") -> None:
        load_table = self._load(connection, shape, shape.columns, rows, _LOAD_TABLE)
        names = self.names(shape.columns)
        connection.execute(
            f"INSERT INTO {self.quote(shape.name)} ({names}) "
            f"SELECT {names} FROM {load_table} {self.on_conflict(shape)}"
        )

    def delete(self, connection: Connection, shape: TableShape, keys: "pa.Table") -> None:
        load_table = self._load(connection, shape, shape.key, keys, f"{_LOAD_TABLE}_keys")
        same = " AND ".join(
            f"target.{self.quote(c.name)} = gone.{self.quote(c.name)}" for c in shape.key
        )
        connection.execute(
            f"DELETE FROM {self.quote(shape.name)} AS target "
            f"USING {load_table} AS gone WHERE {same}"
        )

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
        connection.execute(
            f"CREATE TEMPORARY TABLE {self.quote(name)} ON COMMIT DROP AS "
            f"SELECT {names} FROM {self.quote(shape.name)} WITH NO DATA"
        )
        with connection.cursor().copy(f"COPY {load_table} ({names}) FROM STDIN") as copy:
            for piece in text_of(rows, binary_prefix="\\\\x"):
                copy.write(piece)
        return load_table


def _kind_of(declared: str) -> str | None:
    if match := re.fullmatch(r"numeric\((\d+),(\d+)\)", declared):
        return f"decimal({match[1]},{match[2]})"
    if declared == "numeric":
        return "decimal(1000,500)"  # without digits it holds any number
    if match := re.fullmatch(r"character varying\((\d+)\)", declared):
        return f"varchar({match[1]})"
    if declared == "character varying":
        return "string"
    return _KINDS.get(declared)


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    # libpq puts the address before the reason, and says it for each address it tried.
    return text.rpartition("failed: ")[2].removeprefix("FATAL:  ")
