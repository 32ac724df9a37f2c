"""What one database does in its own way. The rest, `migration` and `writer`, is the same for all.

A dialect holds no connection and no state. Connections are in autocommit mode: transactions are
begun and ended by statements, so that three drivers behave alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.pipelines.sinks.sql.address import Address
from headrace.pipelines.sinks.sql.columns import Column, TableShape
from headrace.pipelines.sinks.sql.existing import ExistingTable

if TYPE_CHECKING:
    import pyarrow as pa

# Three drivers of the DB-API have three types and one manner.
Connection = Any


@dataclass(frozen=True, slots=True)
class DatabaseFault:
    """What an error of the driver means. A transient one may be gone at the next attempt."""

    sentence: str
    is_transient: bool = False
    # In the database's words, the rule of the table that a row breaks: without that row it would
    # take the others. None: it is no matter of rows.
    broken_rule: str | None = None


class Dialect(ABC):
    """One database's ways."""

    name: str
    placeholder = "%s"
    begin = "BEGIN"
    # Whether Name and name are one column.
    folds_case = False
    # The driver's exceptions; anything else is a bug of ours.
    errors: tuple[type[Exception], ...]

    @abstractmethod
    def connect(self, address: Address) -> Connection:
        """Open a connection; driver's errors go through `fault`."""

    @abstractmethod
    def fault(self, error: Exception, address: Address) -> DatabaseFault:
        """What `error` means, in one sentence."""

    def quote(self, name: str) -> str:
        """`name` as an identifier, whatever is in it."""
        return '"' + name.replace('"', '""') + '"'

    def fold(self, name: str) -> str:
        """What is the same for two names of one column."""
        return name.casefold() if self.folds_case else name

    def check_name(self, what: str, name: str) -> None:  # noqa: B027 - SQLite takes any
        """Raise SinkError if no table or column, as `what` says, can be called so."""

    @abstractmethod
    def type_of(self, column: Column, key_count: int) -> str:
        """How a column of a table with `key_count` key columns is declared."""

    def loss(self, column: Column, declared: str) -> str | None:
        """Why values of `column` would be changed without a word in a column that is declared so.

        With the fix; None: they come back as they were, or the database refuses the row.
        """
        return None

    def key_limit(self, column: Column, key_count: int) -> int | None:
        """The greatest length of a value of this key column; None: no limit worth a name."""
        return None

    @abstractmethod
    def read_table(self, connection: Connection, table: str) -> ExistingTable | None:
        """The table as it is; None if there is none."""

    @abstractmethod
    def alter_type(self, table: str, column: Column, key_count: int) -> str | None:
        """The statement that widens a column to `column`; None if it holds wider values as it is.

        Raises NotImplementedError if this database cannot.
        """

    @abstractmethod
    def insert_missing(self, table: str, columns: Sequence[str]) -> str:
        """An insert of one row that does nothing if its key is there."""

    @contextmanager
    def one_at_a_time(self, connection: Connection) -> Iterator[None]:
        """A transaction in which no other headrace changes tables."""
        with transaction(self, connection):
            yield

    def table_suffix(self, connection: Connection) -> str:
        """What stands behind the columns in CREATE TABLE."""
        return ""

    def defer_rules(self, connection: Connection) -> None:  # noqa: B027 - most see a whole statement
        """Let rows of this transaction need each other in any order, as far as it can be had."""

    @abstractmethod
    def upsert(self, connection: Connection, shape: TableShape, rows: "pa.Table") -> int | None:
        """Set `rows`, the columns of `shape` in order; no key occurs twice.

        Returns how many the database says it wrote; None if it does not say.
        """

    @abstractmethod
    def delete(self, connection: Connection, shape: TableShape, keys: "pa.Table") -> None:
        """Delete the rows with `keys`, the key columns of `shape` in order."""

    # What is the same in all of them.

    def names(self, columns: Sequence[Column]) -> str:
        """The columns' names, quoted, for a list in a statement."""
        return ", ".join(self.quote(column.name) for column in columns)

    def create_table(self, connection: Connection, shape: TableShape) -> str:
        """CREATE TABLE with a primary key."""
        key = shape.key
        lines = [
            f"{self.quote(column.name)} {self.type_of(column, len(key))}"
            + (" NOT NULL" if column.is_key else "")
            for column in shape.columns
        ]
        lines.append(f"PRIMARY KEY ({self.names(key)})")
        suffix = self.table_suffix(connection)
        return f"CREATE TABLE IF NOT EXISTS {self.quote(shape.name)} ({', '.join(lines)}){suffix}"

    def add_column(self, shape: TableShape, column: Column) -> str:
        """ALTER TABLE for one column more."""
        declared = self.type_of(column, len(shape.key))
        return (
            f"ALTER TABLE {self.quote(shape.name)} ADD COLUMN {self.quote(column.name)} {declared}"
        )

    def on_conflict(self, shape: TableShape) -> str:
        """The end of an upsert, in SQLite's and PostgreSQL's words."""
        sets = [f"{self.quote(c.name)} = excluded.{self.quote(c.name)}" for c in shape.others]
        what = f"UPDATE SET {', '.join(sets)}" if sets else "NOTHING"
        return f"ON CONFLICT ({self.names(shape.key)}) DO {what}"


@contextmanager
def transaction(dialect: Dialect, connection: Connection) -> Iterator[None]:
    """Commit at the end; roll back on any exception. A dead connection has rolled back already."""
    cursor = connection.cursor()
    cursor.execute(dialect.begin)
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        try:
            cursor.execute("ROLLBACK")
        except dialect.errors:
            connection.close()
        raise
