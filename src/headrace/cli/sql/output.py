"""Rows of a query as people and programs read them: a table, JSON lines, CSV.

Times are UTC whatever the machine's zone is; bytes are hexadecimal behind `0x`. Spark makes text
of times, since its years go on where Python's end, and producers stamp records with any number.
"""

import csv
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headrace.cli.terminal import NONE, print_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
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


def with_times_as_text(frame: "DataFrame") -> "DataFrame":
    """The same rows, all their dates and times in ISO 8601, also inside of others."""
    names = frame.columns
    if not any(_has_time(field.dataType) for field in frame.schema.fields):
        return frame
    # By place: two columns of a join may have one name.
    numbered = frame.toDF(*(f"_{number}" for number in range(len(names))))
    texts = [
        _with_text(numbered[each.name], each.dataType).alias(name)
        for each, name in zip(numbered.schema.fields, names, strict=True)
    ]
    return numbered.select(*texts)


def _has_time(kind: "DataType") -> bool:
    return re.search(r"\b(date|timestamp)", kind.simpleString()) is not None


def _with_text(column: "Column", kind: "DataType") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql import types

    match kind:
        case types.DateType():
            return column.cast("string")
        case types.TimestampNTZType():
            return _iso(column)
        case types.TimestampType():
            return F.concat(_iso(F.to_utc_timestamp(column, F.current_timezone())), F.lit("Z"))
        case types.StructType() if _has_time(kind):
            parts = [_with_text(column[each.name], each.dataType).alias(each.name)
                     for each in kind.fields]  # fmt: skip
            return F.when(column.isNotNull(), F.struct(*parts))
        case types.ArrayType() if _has_time(kind):
            return F.transform(column, lambda each: _with_text(each, kind.elementType))
        case types.MapType() if _has_time(kind):
            entries = F.transform(
                F.map_entries(column),
                lambda each: F.struct(
                    _with_text(each["key"], kind.keyType), _with_text(each["value"], kind.valueType)
                ),
            )
            return F.map_from_entries(entries)
    return column


def _iso(time: "Column") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    # A fraction only where there is one, as Python has it.
    fraction = F.date_format(time, ".SSSSSS")
    return F.concat(
        F.date_format(time, "yyyy-MM-dd'T'HH:mm:ss"),
        F.when(fraction != ".000000", fraction).otherwise(""),
    )


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
    return _unless_null(_scalar)


def _unless_null(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)


def _scalar(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return "0x" + value.hex().upper()
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
