"""Tables in tests: batches made by hand, written without Spark, read back as plain values."""

import contextlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from headrace.client.bus import Bus
from headrace.pipelines.definition import Run
from headrace.pipelines.sinks.sql.address import parse_address
from headrace.pipelines.sinks.sql.columns import Column
from headrace.pipelines.sinks.sql.dialects import dialect_of
from headrace.pipelines.sinks.sql.existing import ExistingTable
from headrace.pipelines.sinks.sql.rows import Changes, changes_of
from headrace.pipelines.sinks.sql.table import SqlTable
from headrace.pipelines.sinks.sql.writer import OpenSqlTable
from headrace.pipelines.spans import Batch

ARROW_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "json": pa.string(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(38,18)": pa.decimal128(38, 18),
}
KEY, VALUE = Column("k", "string", is_key=True), Column("v", "int")


def a_run(app_id: str = "app", told: list[str] | None = None, spark: Any = None) -> Run:
    tell = (lambda sentence: None) if told is None else told.append
    return Run(spark=spark, bus=Bus(), name="test", app_id=app_id, tell=tell)


def arrow_rows(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    *,
    deleted: Sequence[int] = (),
    places: Sequence[tuple[int, int]] | None = None,
    has_record: bool = True,
) -> pa.Table:
    """What `fetch_rows` would give: `places` are partition and offset, `deleted` tombstones."""
    arrays = [
        pa.array([row[index] for row in rows], ARROW_TYPES[column.kind])
        for index, column in enumerate(columns)
    ]
    names = [str(index) for index in range(len(columns))]
    if has_record:
        places = places or [(0, offset) for offset in range(len(rows))]
        arrays += [
            pa.array(["topic"] * len(rows), pa.string()),
            pa.array([partition for partition, _ in places], pa.int32()),
            pa.array([offset for _, offset in places], pa.int64()),
            pa.array([index in deleted for index in range(len(rows))], pa.bool_()),
        ]
        names += ["topic", "partition", "offset", "is_tombstone"]
    return pa.table(arrays, names)


def give(
    sink: OpenSqlTable, changes: Changes, batch: Batch | int, columns: Sequence[Column]
) -> bool:
    """Write a batch as a run does, which asks the sink first; False if it has it."""
    whole = Batch(batch) if isinstance(batch, int) else batch
    left = sink.written().left_of(whole)
    return left is not None and sink.write_changes(changes, tuple(columns), left)


class TestTable:
    """One table of one database; its sink writes as application `app`."""

    __test__ = False

    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url, name
        self.address, _ = parse_address(url, frozenset())
        self.dialect = dialect_of(self.address)
        self.told: list[str] = []
        self._open: list[OpenSqlTable] = []
        self._batch_id = -1

    @property
    def key_type(self) -> str:
        """A type for a text key in a table made by hand: compared as bytes."""
        exact = " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        return "VARCHAR(50)" + (exact if self.dialect.name == "MariaDB" else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the sinks that were opened so far."""
        for sink in self._open:
            sink.close()
        self._open.clear()

    def sink(self, key: tuple[str, ...] = ("k",), app_id: str | None = None) -> OpenSqlTable:
        run = a_run(app_id or self.name, self.told)
        opened = SqlTable(self.url, self.name, key, has_provenance=False).open(run)
        assert isinstance(opened, OpenSqlTable)
        self._open.append(opened)
        return opened

    def write(
        self, columns: Sequence[Column], rows: Sequence[Sequence[Any]], **more: Any
    ) -> Changes:
        """Write one more batch and say what it changed."""
        changes = changes_of(arrow_rows(columns, rows, **more), columns)
        self._batch_id += 1
        key = tuple(column.name for column in columns if column.is_key)
        assert give(self.sink(key), changes, self._batch_id, columns)
        return changes

    def make(self, columns: str, *more: str) -> None:
        """Make the table by hand; `$t` is its name, `$text` a type for its key."""
        for statement in (f"CREATE TABLE $t ({columns})", *more):
            self.execute(statement.replace("$text", self.key_type).replace("$t", self.name))

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(self.dialect.connect(self.address)) as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def declared(self) -> ExistingTable | None:
        """The table as the database has it."""
        with contextlib.closing(self.dialect.connect(self.address)) as connection:
            return self.dialect.read_table(connection, self.name)

    def rows(self, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
        """What is in the table, as Python values, sorted."""
        quote = self.dialect.quote
        names = ", ".join(quote(column.name) for column in columns)
        found = self.execute(f"SELECT {names} FROM {quote(self.name)}")
        read = [
            tuple(_plain(value, column.kind) for value, column in zip(row, columns, strict=True))
            for row in found
        ]
        return by_key(read)


def by_key(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: repr(row[0]))


def _plain(value: Any, kind: str) -> Any:
    """One value, whatever type the driver gives it."""
    if value is None:
        return None
    if kind == "boolean":
        return bool(value)
    if kind == "timestamp":
        read = datetime.fromisoformat(value) if isinstance(value, str) else value
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    if kind == "date":
        return date.fromisoformat(value) if isinstance(value, str) else value
    if kind.startswith("decimal("):
        return Decimal(str(value))
    if kind == "double":
        return float(value)
    if kind in ("int", "bigint"):
        return int(Decimal(value))  # in SQLite it may be a decimal that is text
    if kind == "json" and not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"))
    return value
