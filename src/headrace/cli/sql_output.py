"""Rows of a query as people and programs read them: a table, JSON lines, CSV.

Times are UTC whatever the machine's zone is; bytes are hexadecimal behind `0x`.
"""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headrace.cli.output import NONE, print_table

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def print_pretty(schema: "StructType", rows: Sequence[Sequence[object]]) -> None:
    """A table; nothing is shown as a dash, nested values as JSON."""
    columns = unique_names(schema.names)
    numbers = [
        name
        for name, field in zip(columns, schema.fields, strict=True)
        if field.dataType.simpleString().startswith(_NUMBERS)
    ]
    cells = ([_cell(value, NONE) for value in row] for row in _plain(schema, rows))
    print_table(columns, cells, numbers=numbers)


def print_json_lines(schema: "StructType", rows: Iterable[Sequence[object]]) -> None:
    """One object a row."""
    names = unique_names(schema.names)
    for row in _plain(schema, rows):
        print(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))


def print_csv(schema: "StructType", rows: Iterable[Sequence[object]]) -> None:
    """A line of names and one a row; nothing is an empty field, nested values are JSON."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(schema.names)
    for row in _plain(schema, rows):
        writer.writerow([_cell(value, "") for value in row])


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, those that were there before with a number: `id, id_2`."""
    found = list[str]()
    for name in names:
        unique, number = name, 1
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found


def _plain(schema: "StructType", rows: Iterable[Sequence[object]]) -> Iterable[list[Any]]:
    """The rows as what JSON has: texts, numbers, lists and objects."""
    makers = [_maker(field.dataType) for field in schema.fields]
    for row in rows:
        yield [make(value) for make, value in zip(makers, row, strict=True)]


def _maker(kind: "DataType") -> Callable[[Any], Any]:
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        parts = [(field.name, _maker(field.dataType)) for field in kind.fields]
        return _unless_null(
            lambda row: {name: make(value) for (name, make), value in zip(parts, row, strict=True)}
        )
    if isinstance(kind, types.ArrayType):
        element = _maker(kind.elementType)
        return _unless_null(lambda values: [element(value) for value in values])
    if isinstance(kind, types.MapType):
        key, member = _maker(kind.keyType), _maker(kind.valueType)
        return _unless_null(
            lambda values: {str(key(name)): member(value) for name, value in values.items()}
        )
    if isinstance(kind, types.TimestampType):
        return _unless_null(_utc)
    return _unless_null(_scalar)


def _unless_null(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)


def _utc(time: datetime) -> str:
    # pyspark hands times over in the machine's zone, without naming it.
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _scalar(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return "0x" + value.hex().upper()
        case datetime() | date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)  # JSON has neither NaN nor infinity
        case Decimal():
            return str(value)  # as exact as it is
        case bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def _cell(value: Any, null: str) -> str:
    match value:
        case None:
            return null
        case bool():
            return str(value).lower()
        case list() | dict():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)
