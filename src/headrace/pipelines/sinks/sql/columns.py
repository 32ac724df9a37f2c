"""The columns of a table, and when one type can take the place of another.

A `kind` is Spark's name of a type, folded to those that three databases can hold alike:

    boolean  int  bigint  double  decimal(p,s)  string  binary  date  timestamp  json

tinyint and smallint become int, float becomes double (every float is one), structs, arrays and
maps become json: text. Tables made by others may also have smallint, float and varchar(n).

A column's kind is what the column gives back unchanged: a type that pads, cuts, rounds or folds
without a word has none, or its dialect refuses the values (`tests/…/test_given_back.py`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.definition import RECORD_COLUMN
from headrace.pipelines.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SAME = ("boolean", "int", "bigint", "double", "string", "binary", "date", "timestamp")
_FOLDED = {
    "tinyint": "int",
    "smallint": "int",
    "float": "double",
    "timestamp_ntz": "timestamp",
    "void": "string",  # a column that is always null
}
_NESTED = ("struct<", "array<", "map<")
_NO_KEY = {"double": "a floating-point number", "json": "a nested value"}
# The digits before and after the point that a decimal needs to hold the whole type; a double's
# are those of its shortest text, from 1.7976931348623157e308 to 2.2250738585072014e-308 and below.
_DIGITS = {"smallint": (5, 0), "int": (10, 0), "bigint": (19, 0), "double": (309, 341)}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table; `kind` as above."""

    name: str
    kind: str
    is_key: bool = False
    # Of a table that was there: how the database says the column is declared.
    declared: str | None = None
    # The database puts a value of its own where it is given null: the next number, the time.
    replaces_null: bool = False


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a table looks like to the batches that go into it."""

    name: str
    columns: tuple[Column, ...]

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns that say which row is meant."""
        return tuple(column for column in self.columns if column.is_key)

    @property
    def others(self) -> tuple[Column, ...]:
        """The columns an update sets."""
        return tuple(column for column in self.columns if not column.is_key)


# Where a row came from, in the table: after the fields, in this order.
PROVENANCE = (
    Column("_topic", "string"),
    Column("_partition", "int"),
    Column("_offset", "bigint"),
    Column("_timestamp", "timestamp"),
)


def columns_of(
    schema: "StructType", key: Sequence[str], *, has_provenance: bool
) -> tuple[Column, ...]:
    """The table's columns for frames of `schema`; raises SinkError if there can be none."""
    fields = [field for field in schema.fields if field.name != RECORD_COLUMN]
    columns = [
        Column(field.name, kind_of(field.name, field.dataType.simpleString()), field.name in key)
        for field in fields
    ]
    names = [column.name for column in columns]
    missing = [name for name in key if name not in names]
    if missing:
        raise SinkError(
            f"the key column {missing[0]} is not in the frame, which has {', '.join(names)}"
        )
    for column in columns:
        if column.is_key and not can_be_key(column.kind):
            raise SinkError(
                f"the key column {column.name} is {_NO_KEY[column.kind]}, which has no "
                "reliable equality; cast it to string, bigint or decimal"
            )
    if has_provenance and len(fields) < len(schema.fields):
        columns += PROVENANCE
    _check_names(columns)
    return tuple(columns)


def can_be_key(kind: str) -> bool:
    """Whether two values of this kind are the same only if they look the same."""
    return kind not in _NO_KEY


def kind_of(name: str, spark_type: str) -> str:
    """The kind for one of Spark's types, by its simple name."""
    if spark_type in _SAME or spark_type.startswith("decimal("):
        return spark_type
    if spark_type.startswith(("varchar(", "char(", "string")):
        return "string"
    if spark_type.startswith(_NESTED):
        return "json"
    if spark_type not in _FOLDED:
        raise SinkError(
            f"column {name} is of type {spark_type}, which no table holds; "
            "cast it to string in the transform"
        )
    return _FOLDED[spark_type]


def _check_names(columns: Iterable[Column]) -> None:
    seen: dict[str, str] = {}
    for column in columns:
        # Two of the three databases take Name and name for one column.
        other = seen.setdefault(column.name.casefold(), column.name)
        if other is not column.name:
            raise SinkError(
                f"the frame's columns {other} and {column.name} would be one column; rename one"
                + (" or leave out provenance" if column.name.startswith("_") else "")
            )
        if not column.name or "\0" in column.name:
            raise SinkError(f"{column.name!r} cannot be the name of a column; rename it")


def can_hold(existing: str, wanted: str) -> bool:
    """Whether a column of kind `existing` holds every value of kind `wanted`."""
    if existing == wanted:
        return True
    if existing.startswith("decimal("):
        precision, scale = digits_of(existing)
        if wanted.startswith("decimal("):
            wanted_precision, wanted_scale = digits_of(wanted)
            whole = wanted_precision - wanted_scale
        elif wanted in _DIGITS:
            whole, wanted_scale = _DIGITS[wanted]
        else:
            return False
        return scale >= wanted_scale and precision - scale >= whole
    holds = {
        "int": ("smallint",),
        "bigint": ("int", "smallint"),
        "double": ("float", "int", "smallint"),  # 53 bits: every int, not every bigint
        "string": ("json",),
        "json": (),
    }
    if wanted.startswith("varchar("):
        length = digits_of(existing)[0] if existing.startswith("varchar(") else 0
        return existing == "string" or length >= digits_of(wanted)[0]
    return wanted in holds.get(existing, ())


def digits_of(kind: str) -> tuple[int, int]:
    """Precision and scale of a decimal; the length of a varchar, and 0."""
    numbers = [int(digits) for digits in re.findall(r"\d+", kind)]
    return numbers[0], numbers[1] if len(numbers) > 1 else 0
