"""What a batch changes in a table: the last row of each key, as Arrow; rows to set, keys to delete.

Invariant: a key occurs once in `Changes`, in `upserts` or in `deletes`. Which row of a key is the
last is said by the log: partition, then offset. Timestamps do not decide; clocks differ.

Some values no table can hold, or not all three alike. They are replaced here, so that the three
databases get the same, and the user is told:

    U+0000 in text, bytes that are not UTF-8   become U+FFFD   PostgreSQL refuses both
    NaN, infinity                              become null     SQLite and MariaDB have none
    dates outside the years 1 to 9999          become null     MariaDB refuses them

Not in a key, where two rows would become one: such a row is refused, as is one whose key is null
or longer than the database's index takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.pipelines.definition import RECORD_COLUMN
from headrace.pipelines.errors import SinkError
from headrace.pipelines.refusal import RefusedRow, RowsRefusedError
from headrace.pipelines.sinks.sql.columns import PROVENANCE, Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_PLACE_FIELDS = ["topic", "partition", "offset"]
_RECORD_FIELDS = (*_PLACE_FIELDS, "is_tombstone")
# Days and microseconds since 1970 of 0001-01-01 and 10000-01-01.
_FIRST_DAY, _END_DAY = -719_162, 2_932_897
_DAY_US = 86_400_000_000
# Arrow sorts by copying each column into one piece, and a piece of text has at most 2 GiB.
_MAX_SORTED_BYTES = 1024 * 1024 * 1024
_REPLACEMENT = "\ufffd"


@dataclass
class Changes:
    """One batch, ready to load. `row_count` counts the rows it was made from."""

    upserts: pa.Table
    deletes: pa.Table
    row_count: int
    # Topic, partition and offset of each row; no columns if the frame has no `_record`.
    upsert_places: pa.Table = field(default_factory=lambda: pa.table({}))
    delete_places: pa.Table = field(default_factory=lambda: pa.table({}))
    # Of each column in which something had to be replaced a sentence.
    notes: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.upserts.num_rows + self.deletes.num_rows)

    def part(self, start: int, end: int) -> "Changes":
        """Some of them, by their number: first the upserts, then the deletes."""
        split = self.upserts.num_rows
        upserts = min(start, split), max(0, min(end, split) - start)
        deletes = max(0, start - split), max(0, end - max(start, split))
        return Changes(
            self.upserts.slice(*upserts),
            self.deletes.slice(*deletes),
            self.row_count,
            self.upsert_places.slice(*upserts),
            self.delete_places.slice(*deletes),
        )

    def in_log_order(self) -> "Changes":
        """The same by topic, partition and offset: first the upserts, then the deletes."""
        upserts, upsert_places = _in_log_order(self.upserts, self.upsert_places)
        deletes, delete_places = _in_log_order(self.deletes, self.delete_places)
        return Changes(upserts, deletes, self.row_count, upsert_places, delete_places)

    def place(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset of the only row; None if the frame has no `_record`."""
        places = self.upsert_places if self.upserts.num_rows else self.delete_places
        return _place_of(places, 0) if places.num_columns else None

    def key(self) -> str:
        """The key of the only row, for people."""
        rows = self.upserts if self.upserts.num_rows else self.deletes
        names = self.deletes.column_names
        return ", ".join(str(rows.column(name)[0].as_py()) for name in names)


def fetch_rows(frame: "DataFrame", columns: Sequence[Column]) -> pa.Table:
    """Bring a batch to the driver: `columns` in order, then the record's fields if it has them."""
    from pyspark.sql import functions as f

    has_record = RECORD_COLUMN in frame.columns
    selected = []
    for index, column in enumerate(columns):
        if has_record and column in PROVENANCE:
            value = f.col(f"{RECORD_COLUMN}.{column.name[1:]}")
        elif has_record and column.is_key:
            value = key_value(column, columns)
        else:
            value = _field(column)
        if column.kind == "json":
            value = f.to_json(value)
        elif column.kind == "timestamp":
            value = value.cast("timestamp")
        # Numbers, as a frame's names may clash with those of the record's fields.
        selected.append(value.alias(str(index)))
    if has_record:
        selected += [f.col(f"{RECORD_COLUMN}.{name}").alias(name) for name in _RECORD_FIELDS]
    return frame.select(*selected).toArrow()


def key_value(column: Column, columns: Sequence[Column]) -> "SparkColumn":
    """The value of a key column; that of a tombstone, which has no fields, is its message's key.

    The message's key is the value as text, or, for several key columns, a JSON object with them.
    """
    from pyspark.sql import functions as f

    key = [each for each in columns if each.is_key]
    text = f.col(f"{RECORD_COLUMN}.key").cast("string")
    if len(key) > 1:
        fields = ", ".join(f"`{each.name.replace('`', '``')}` string" for each in key)
        text = f.from_json(text, fields).getField(column.name)
    from_message = f.coalesce(_field(column), text.try_cast(column.kind))
    is_tombstone = f.col(f"{RECORD_COLUMN}.is_tombstone")
    return f.when(is_tombstone, from_message).otherwise(_field(column))


def _field(column: Column) -> "SparkColumn":
    from pyspark.sql import functions as f

    return f.col("`" + column.name.replace("`", "``") + "`")


def changes_of(
    rows: pa.Table,
    columns: Sequence[Column],
    limit_of: Callable[[Column], int | None] = lambda column: None,
) -> Changes:
    """What `rows`, as `fetch_rows` gives them, change.

    `limit_of` is the greatest length of a key column. Raises RowsRefusedError if some rows have no
    key that a table holds; SinkError if nobody could tell which records these are.
    """
    has_record = rows.num_columns > len(columns)
    notes: dict[str, str] = {}
    values = []
    refused: list[tuple[int, str]] = []
    for index, column in enumerate(columns):
        held, replaced = _as_held(rows.column(index), column)
        values.append(held)
        if column.is_key:
            refused += _unusable_keys(rows.column(index), held, replaced, column, limit_of(column))
        elif replaced is not None:
            row = _first_true(replaced)
            count = pc.sum(replaced).as_py()
            notes[column.name] = (
                f"column {column.name}: {count} {'value' if count == 1 else 'values'} no table "
                f"holds replaced, the first in {_place(rows, row, has_record)}"
            )
    if refused:
        _refuse(rows, refused, has_record)
    key = [index for index, column in enumerate(columns) if column.is_key]
    numbers = [str(index) for index in range(len(columns))]
    keys = [numbers[index] for index in key]
    table = pa.Table.from_arrays(values, numbers)
    is_last = _last_per_key(table.select(keys), rows, has_record)
    if not has_record:
        upserts = _in_key_order(table, key)
        return Changes(upserts, table.select(keys).slice(0, 0), rows.num_rows, notes=notes)
    for name in _PLACE_FIELDS:
        table = table.append_column(name, rows.column(name))
    is_tombstone = pc.fill_null(rows.column("is_tombstone"), False).to_numpy()
    upserts = _in_key_order(_kept(table, is_last & ~is_tombstone), key)
    deletes = _kept(table, is_last & is_tombstone)
    return Changes(
        upserts=upserts.select(numbers),
        deletes=deletes.select(keys),
        row_count=rows.num_rows,
        upsert_places=upserts.select(_PLACE_FIELDS),
        delete_places=deletes.select(_PLACE_FIELDS),
        notes=notes,
    )


def _unusable_keys(
    given: pa.ChunkedArray,
    held: pa.ChunkedArray,
    replaced: pa.Array | None,
    column: Column,
    limit: int | None,
) -> list[tuple[int, str]]:
    """The numbers of the rows that cannot be found by this column, and why."""
    found = [(row, f"the key column {column.name} is null") for row in _where(given.is_null())]
    if replaced is not None:
        reason = (
            f"the key column {column.name} has a value no table holds: U+0000, bytes that are not "
            "UTF-8, or a date outside the years 1 to 9999"
        )
        found += [(row, reason) for row in _where(replaced)]
    if limit is not None:
        lengths = (pc.utf8_length if column.kind == "string" else pc.binary_length)(held)
        found += [
            (
                row,
                f"the key column {column.name} has a value of length {lengths[row].as_py()}; "
                f"this database's index takes {limit}",
            )
            for row in _where(pc.greater(lengths, limit))
        ]
    return found


def _refuse(rows: pa.Table, refused: list[tuple[int, str]], has_record: bool) -> NoReturn:
    if not has_record:
        row, reason = refused[0]
        raise SinkError(
            f"{reason}, in {_place(rows, row, has_record)}; filter such rows in the transform, or "
            f"keep {RECORD_COLUMN} there, by which they go to the dead letters"
        )
    raise RowsRefusedError(
        "the table", [RefusedRow(*_place_of(rows, row), reason) for row, reason in refused]
    )


def _where(mask: pa.ChunkedArray) -> list[int]:
    """The numbers of the rows for which it is true."""
    if not pc.any(mask).as_py():
        return []
    numbers = np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))
    return [int(number) for number in numbers]


def _in_key_order(table: pa.Table, key: Sequence[int]) -> pa.Table:
    """Neighbours in the index one after the other: half the work for a database's B-tree."""
    if table.nbytes > _MAX_SORTED_BYTES:
        return table
    return table.sort_by([(str(index), "ascending") for index in key])


def _in_log_order(table: pa.Table, places: pa.Table) -> tuple[pa.Table, pa.Table]:
    if not places.num_columns or table.nbytes > _MAX_SORTED_BYTES:
        return table, places
    order = pc.sort_indices(places, [(name, "ascending") for name in _PLACE_FIELDS])
    return table.take(order), places.take(order)


def _kept(table: pa.Table, mask: np.ndarray) -> pa.Table:
    return table if mask.all() else table.filter(pa.array(mask))


def _last_per_key(keys: pa.Table, rows: pa.Table, has_record: bool) -> np.ndarray:
    """Which rows are the last of their key; without a record, each has to be the only one."""
    count = keys.num_rows
    order = _log_order(rows) if has_record else np.arange(count)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    names = keys.column_names
    last = keys.append_column("rank", pa.array(rank)).group_by(names, use_threads=False)
    maxima = last.aggregate([("rank", "max")]).column("rank_max").to_numpy()
    is_last = np.zeros(count, bool)
    is_last[order[maxima]] = True
    if not has_record and not is_last.all():
        row = int(np.flatnonzero(~is_last)[0])
        shown = ", ".join(str(keys.column(name)[row].as_py()) for name in names)
        raise SinkError(
            f"the key {shown} is there twice in one batch and the frame has no {RECORD_COLUMN} "
            f"to say which row is the last; keep {RECORD_COLUMN} in the transform, or aggregate"
        )
    return is_last


def _log_order(rows: pa.Table) -> np.ndarray:
    """The rows' numbers in the order of the log; rows of one record stay as they are."""
    topics = pc.dictionary_encode(rows.column("topic")).unify_dictionaries()
    names = topics.chunk(0).dictionary.to_pylist() if topics.num_chunks else []
    by = [rows.column("offset").to_numpy(), rows.column("partition").to_numpy()]
    if len(names) > 1:
        # Between topics the log has no order; the name makes it the same at every replay.
        place = np.argsort(np.argsort(names))
        codes = np.concatenate([chunk.indices.to_numpy() for chunk in topics.chunks])
        by.append(place[codes])
    return np.lexsort(by)


def _as_held(values: pa.ChunkedArray, column: Column) -> tuple[pa.ChunkedArray, pa.Array | None]:
    """`values` as every database can hold them, and which had to be replaced."""
    if column.kind in ("string", "json"):
        return _text_as_held(values)
    if column.kind == "binary":
        return values.cast(pa.binary()), None
    if column.kind == "double":
        values = values.cast(pa.float64())
        return _null_where(values, pc.invert(pc.is_finite(values)))
    if column.kind == "timestamp":
        # Without a zone from here on: it is UTC everywhere.
        values = values.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
        return _within_years(values, pa.int64(), _DAY_US)
    if column.kind == "date":
        return _within_years(values, pa.int32(), 1)
    return values, None


def _text_as_held(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.Array | None]:
    # Spark takes bytes for text without a look: cast(value as string).
    is_utf8 = all(_is_utf8(chunk) for chunk in values.chunks)
    if is_utf8:
        values = values.cast(pa.string())
        replaced = pc.match_substring(values, "\0")
        if not pc.any(replaced).as_py():
            return values, None
        return pc.replace_substring(values, "\0", _REPLACEMENT), pc.fill_null(replaced, False)
    read = [
        None if text is None else text.decode("utf-8", "replace").replace("\0", _REPLACEMENT)
        for text in values.cast(pa.binary()).to_pylist()
    ]
    held = pa.chunked_array([pa.array(read, pa.string())])
    changed = pc.not_equal(held.cast(pa.binary()), values.cast(pa.binary()))
    return held, pc.fill_null(changed, False)


def _is_utf8(chunk: pa.Array) -> bool:
    try:
        chunk.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _within_years(
    values: pa.ChunkedArray, as_integer: pa.DataType, day: int
) -> tuple[pa.ChunkedArray, pa.Array | None]:
    numbers = values.cast(as_integer)
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or (
        bounds["min"] >= _FIRST_DAY * day and bounds["max"] < _END_DAY * day
    ):
        return values, None
    is_early = pc.less(numbers, pa.scalar(_FIRST_DAY * day, as_integer))
    is_late = pc.greater_equal(numbers, pa.scalar(_END_DAY * day, as_integer))
    return _null_where(values, pc.or_(is_early, is_late))


def _null_where(
    values: pa.ChunkedArray, is_unholdable: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.Array | None]:
    is_unholdable = pc.fill_null(is_unholdable, False)
    if not pc.any(is_unholdable).as_py():
        return values, None
    return pc.if_else(is_unholdable, pa.scalar(None, values.type), values), is_unholdable


def _first_true(mask: pa.ChunkedArray) -> int:
    index: int = pc.index(mask, True).as_py()
    return index


def _place(rows: pa.Table, row: int, has_record: bool) -> str:
    if not has_record:
        return f"row {row} of the batch"
    topic, partition, offset = _place_of(rows, row)
    return f"{topic}-{partition} at offset {offset}"


def _place_of(rows: pa.Table, row: int) -> tuple[str, int, int]:
    """Topic, partition and offset of a row."""
    topic, partition, offset = (rows.column(name)[row].as_py() for name in _PLACE_FIELDS)
    return topic, partition, offset
