"""MariaDB and MySQL: LOAD DATA LOCAL into a temporary table, then INSERT … ON DUPLICATE KEY.

LOAD DATA LOCAL turns errors into warnings, whatever the SQL mode; each warning here ends the batch.
"""

import re
import ssl
import tempfile
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
from headrace.pipelines.sinks.sql.mariadb_catalog import (
    MARIADB_EXACT,
    MYSQL_EXACT,
    read_table,
)

try:
    import pymysql
except ImportError:
    raise SinkError(
        f"MariaDB needs the package PyMySQL: {how_to_install('spark', 'pymysql')}"
    ) from None

if TYPE_CHECKING:
    import pyarrow as pa

CONNECT_SECONDS = 10
# A statement that takes longer than this has lost its server.
READ_SECONDS = 600
LOCK_SECONDS = 60
# InnoDB's index takes 3,072 bytes. The text and binary key columns share what is left after
# sixteen others of at most 17 bytes; a character may have four bytes.
KEY_BYTES = 3072 - 16 * 17
MAX_NAME_CHARACTERS = 64
_LOAD_TABLE = "headrace_load"
_LOCK_NAME = "headrace_schema"

_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "string": "LONGTEXT",
    "binary": "LONGBLOB",
    "date": "DATE",
    "timestamp": "DATETIME(6)",
    "json": "LONGTEXT",
}
_WRONG_PASSWORD, _NO_DATABASE = (1045, 1698), (1049,)
_NO_PERMISSION = (1044, 1142, 1143, 1227, 1370)
_NO_LOCAL_FILES = (1148, 3948, 4166)
# No server, connection lost, server going down, killed, too many connections, lock, deadlock.
_TRANSIENT = (2002, 2003, 2006, 2013, 1053, 1077, 1079, 1927, 1040, 1205, 1213)
_ERRORS_OF_ROWS = (pymysql.err.DataError, pymysql.err.IntegrityError)
# Beside what the driver calls errors of data and integrity: a value that has to be given, a
# trigger's SIGNAL, a CHECK.
_OF_ROWS = (1364, 1644, 3819, 4025)


class Mariadb(Dialect):
    """See the module."""

    name = "MariaDB"
    begin = "START TRANSACTION"
    folds_case = True
    errors = (pymysql.err.Error, OSError)

    def connect(self, address: Address) -> Connection:
        ca_file = address.settings.get("ssl-ca")
        # PyMySQL verifies nothing unless told, not even with a CA; identity includes the signature.
        more: dict[str, Any] = {"ssl_ca": ca_file, "ssl_verify_identity": True} if ca_file else {}
        return pymysql.connect(
            host=address.host,
            port=address.port,
            user=address.user or None,
            password=address.find_password() or "",
            database=address.database,
            charset="utf8mb4",
            autocommit=True,
            local_infile=True,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            write_timeout=READ_SECONDS,
            # Without ANSI_QUOTES and NO_BACKSLASH_ESCAPES, whatever the server's default.
            # And 0 is a number, also where a column counts by itself.
            sql_mode="STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO",
            # What is cut off at loading is told by warnings and notes alone.
            init_command="SET time_zone = '+00:00', sql_notes = 1, max_error_count = 64",
            **more,
        )

    def fault(self, error: Exception, address: Address) -> DatabaseFault:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = str(error.args[-1]) if error.args else str(error)
        place = f"MariaDB at {address.host}:{address.port}"
        if number in _WRONG_PASSWORD:
            return DatabaseFault(
                f"{place} does not take the password of user {address.user}; give it in the URL, "
                "by ?password-file=PATH or in MYSQL_PWD"
            )
        if number in _NO_DATABASE:
            return DatabaseFault(
                f"{place} has no database {address.database}; create it: "
                f"CREATE DATABASE {self.quote(address.database)}"
            )
        if number in _NO_PERMISSION:
            return DatabaseFault(
                f"user {address.user} may not do this in {address}: {text}; GRANT it"
            )
        if isinstance(getattr(error, "original_exception", None), ssl.SSLError):
            return DatabaseFault(
                f"{place} could not prove that it is {address.host}: {text}; "
                "name the CA that signed its certificate with ?ssl-ca=PATH"
            )
        if number in _NO_LOCAL_FILES:
            return DatabaseFault(
                f"{place} has local_infile off; set it: SET GLOBAL local_infile = 1"
            )
        if number in _TRANSIENT or isinstance(error, (OSError, pymysql.err.InterfaceError)):
            is_down = number in (2002, 2003)
            why = "no server answers" if is_down else text or "the connection is lost"
            return DatabaseFault(f"{place}: {why}; is it running?", is_transient=True)
        # The number of a row in the file that was loaded means nothing to anybody.
        text = re.sub(r" at row \d+$", "", text)
        is_of_rows = number in _OF_ROWS or isinstance(error, _ERRORS_OF_ROWS)
        return DatabaseFault(
            f"{place} refused the rows: {text}", broken_rule=text if is_of_rows else None
        )

    def check_name(self, what: str, name: str) -> None:
        fix = "rename it in the transform" if what == "column" else "choose another name"
        if len(name) > MAX_NAME_CHARACTERS:
            raise SinkError(
                f"{what} {name} has a name of {len(name)} characters; MariaDB's longest has "
                f"{MAX_NAME_CHARACTERS}: {fix}"
            )
        if name.endswith(" ") or max(name) > "\uffff":
            raise SinkError(
                f"{what} {name!r}: in MariaDB no name ends with a blank or has characters beyond "
                f"U+FFFF, such as emoji; {fix}"
            )

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def type_of(self, column: Column, key_count: int) -> str:
        if column.kind.startswith("decimal("):
            return column.kind.upper()
        limit = self.key_limit(column, key_count)
        if limit is not None:
            return f"VARCHAR({limit})" if column.kind == "string" else f"VARBINARY({limit})"
        return _TYPES[column.kind]

    def key_limit(self, column: Column, key_count: int) -> int | None:
        if not column.is_key or column.kind not in ("string", "binary"):
            return None
        share = KEY_BYTES // key_count
        return share // 4 if column.kind == "string" else share

    def table_suffix(self, connection: Connection) -> str:
        # As bytes, with blanks at the end: two keys are one here if and only if they are elsewhere.
        is_mariadb = "mariadb" in str(connection.get_server_info()).lower()
        collation = MARIADB_EXACT if is_mariadb else MYSQL_EXACT
        return f" ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE {collation}"

    def read_table(self, connection: Connection, table: str) -> ExistingTable | None:
        return read_table(connection, table, self.quote)

    def alter_type(self, table: str, column: Column, key_count: int) -> str | None:
        declared = self.type_of(column, key_count) + (" NOT NULL" if column.is_key else "")
        return f"ALTER TABLE {self.quote(table)} MODIFY COLUMN {self.quote(column.name)} {declared}"

    def insert_missing(self, table: str, columns: Sequence[str]) -> str:
        places = ", ".join("%s" for _ in columns)
        names = ", ".join(map(self.quote, columns))
        return f"INSERT IGNORE INTO {self.quote(table)} ({names}) VALUES ({places})"

    @contextmanager
    def one_at_a_time(self, connection: Connection) -> Iterator[None]:
        # Changing a table ends a transaction here, so the lock is one of the session.
        with connection.cursor() as cursor:
            cursor.execute("SELECT GET_LOCK(%s, %s)", (_LOCK_NAME, LOCK_SECONDS))
            if cursor.fetchone()[0] != 1:
                raise SinkError(f"another headrace has been changing tables for {LOCK_SECONDS} s")
            try:
                with transaction(self, connection):
                    yield
            finally:
                if connection.open:
                    cursor.execute("SELECT RELEASE_LOCK(%s)", (_LOCK_NAME,))

    def upsert(self, connection: Connection, shape: TableShape, rows: "pa.Table") -> int | None:
        load_table = self._load(connection, shape, shape.columns, rows, _LOAD_TABLE)
        names = self.names(shape.columns)
        sets = [f"{self.quote(c.name)} = VALUES({self.quote(c.name)})" for c in shape.others]
        if not sets:
            first = self.quote(shape.key[0].name)
            sets = [f"{first} = {self.quote(shape.name)}.{first}"]
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {self.quote(shape.name)} ({names}) SELECT {names} "
                f"FROM {load_table} ON DUPLICATE KEY UPDATE {', '.join(sets)}"
            )
            cursor.execute(f"DROP TEMPORARY TABLE {load_table}")
        return None  # its count has two for a row that is updated, none for one that stays

    def delete(self, connection: Connection, shape: TableShape, keys: "pa.Table") -> None:
        load_table = self._load(connection, shape, shape.key, keys, f"{_LOAD_TABLE}_keys")
        same = " AND ".join(
            f"target.{self.quote(c.name)} = gone.{self.quote(c.name)}" for c in shape.key
        )
        with connection.cursor() as cursor:
            cursor.execute(
                f"DELETE target FROM {self.quote(shape.name)} AS target "
                f"JOIN {load_table} AS gone ON {same}"
            )
            cursor.execute(f"DROP TEMPORARY TABLE {load_table}")

    def _load(
        self,
        connection: Connection,
        shape: TableShape,
        columns: Sequence[Column],
        rows: "pa.Table",
        name: str,
    ) -> str:
        from headrace.pipelines.sinks.sql.text_rows import text_of

        for column, values in zip(columns, rows.columns, strict=True):
            if column.replaces_null and values.null_count:
                raise pymysql.err.IntegrityError(1048, f"Column '{column.name}' cannot be null")
        load_table = self.quote(name)
        # Bytes arrive as hexadecimal digits: the text they would be is not UTF-8.
        into, sets = [], []
        for index, column in enumerate(columns):
            is_binary = column.kind == "binary"
            into.append(f"@c{index}" if is_binary else self.quote(column.name))
            if is_binary:
                sets.append(f"{self.quote(column.name)} = UNHEX(@c{index})")
        with connection.cursor() as cursor, tempfile.NamedTemporaryFile() as file:
            for piece in text_of(rows, binary_prefix=""):
                file.write(piece)
            file.flush()
            cursor.execute(f"DROP TEMPORARY TABLE IF EXISTS {load_table}")
            cursor.execute(
                f"CREATE TEMPORARY TABLE {load_table} AS SELECT {self.names(columns)} "
                f"FROM {self.quote(shape.name)} LIMIT 0"
            )
            loaded = cursor.execute(
                f"LOAD DATA LOCAL INFILE {connection.escape(file.name)} INTO TABLE {load_table} "
                "CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' "
                f"LINES TERMINATED BY '\\n' ({', '.join(into)})"
                + (f" SET {', '.join(sets)}" if sets else "")
            )
            cursor.execute("SHOW WARNINGS")
            warnings = cursor.fetchall()
        if warnings or loaded != rows.num_rows:
            why = warnings[0][-1] if warnings else f"{loaded} rows of {rows.num_rows} arrived"
            raise pymysql.err.DataError(0, f"{why}")
        return load_table
