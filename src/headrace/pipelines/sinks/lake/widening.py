"""Schemas put together as a reader of Parquet expects it: all columns, in types that lose nothing.

What Spark's reader can widen without altering a value is widened: whole numbers to larger ones, to
double and to decimal, float to double, decimals to wider ones, date to timestamp_ntz; also in
structs, arrays and maps. Whatever else differs is a ClashError: a number is no text. So are two
fields of one schema that are one to Spark: files that have both cannot be read any more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.lake.names import folded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

# Digits that a decimal needs left of the point to take them; Spark's reader asks for as many.
_WHOLE_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
_WHOLE = tuple(_WHOLE_DIGITS)  # from narrow to wide
_EXACT_IN_DOUBLE = {"tinyint", "smallint", "int", "float", "double"}
_MAX_DIGITS = 38


class ClashError(SinkError):
    """A column has two types that nothing holds without loss."""

    def __init__(self, column: str, has: str, comes: str, sentence: str | None = None) -> None:
        super().__init__(
            sentence
            or f"column {column} of the lake is {has} and that of the rows {comes}, which no type "
            f"holds without loss; cast it to {has} in the transform, or write to a new lake"
        )
        self.column, self.has, self.comes = column, has, comes


class SameNameError(ClashError):
    """Two fields of one schema have names that are one to Spark."""

    def __init__(self, one: str, other: str, kinds: tuple[str, str]) -> None:
        sentence = (
            f"{one} and {other} of the rows have names that are one to Spark, which then cannot "
            "read them; give one another name in the transform"
        )
        super().__init__(one, *kinds, sentence)
        self.other = other


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A column, or a part of one, that has another type now; the path is as SQL writes it."""

    path: str
    kind: str


def united(schemas: Iterable["StructType"], *, is_case_sensitive: bool = False) -> "StructType":
    """All columns of all schemas, in the order they are met; ClashError names what cannot be."""
    from pyspark.sql.types import StructType

    found = StructType([])
    for schema in schemas:
        _refuse_same_names(schema, "", is_case_sensitive)
        found = _structs(found, schema, "", is_case_sensitive)
    return found


def retyped(rows: "DataFrame", schema: "StructType") -> "DataFrame":
    """The rows with their own columns, in the types that `schema` has for them."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    wanted = _shaped(rows.schema, schema)
    changed = {
        field.name: F.col(_quoted(field.name)).cast(field.dataType)
        for field, own in zip(wanted.fields, rows.schema.fields, strict=True)
        if field.dataType.simpleString() != own.dataType.simpleString()
    }
    return rows.withColumns(changed) if changed else rows


def changes(before: "StructType", after: "StructType") -> list[TypeChange]:
    """What of `before` has another type in `after`, which has all its columns, in its order."""
    return [
        change
        for field, later in zip(before.fields, after.fields, strict=False)
        for change in _changes(field.dataType, later.dataType, _quoted(field.name))
    ]


def leaf_types(kind: "DataType") -> set[str]:
    """The names of all types in a schema that are not made of others."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        parts = [field.dataType for field in kind.fields]
    elif isinstance(kind, ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, MapType):
        parts = [kind.keyType, kind.valueType]
    else:
        return {kind.simpleString()}
    return set[str]().union(*(leaf_types(part) for part in parts))


def _changes(before: "DataType", after: "DataType", path: str) -> Iterator[TypeChange]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(before, StructType) and isinstance(after, StructType):
        for each in changes(before, after):
            yield TypeChange(f"{path}.{each.path}", each.kind)
    elif isinstance(before, ArrayType) and isinstance(after, ArrayType):
        yield from _changes(before.elementType, after.elementType, f"{path}.element")
    elif isinstance(before, MapType) and isinstance(after, MapType):
        yield from _changes(before.keyType, after.keyType, f"{path}.key")
        yield from _changes(before.valueType, after.valueType, f"{path}.value")
    elif before.simpleString() != after.simpleString():
        yield TypeChange(path, after.simpleString())


def _refuse_same_names(kind: "DataType", place: str, is_case_sensitive: bool) -> None:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        met: dict[str, StructField] = {}
        for field in kind.fields:
            twin = met.setdefault(_key(field, is_case_sensitive), field)
            if twin is not field:
                types = twin.dataType.simpleString(), field.dataType.simpleString()
                raise SameNameError(_path(place, twin), _path(place, field), types)
            _refuse_same_names(field.dataType, _path(place, field), is_case_sensitive)
    elif isinstance(kind, ArrayType):
        _refuse_same_names(kind.elementType, f"{place}[]", is_case_sensitive)
    elif isinstance(kind, MapType):
        _refuse_same_names(kind.keyType, f"{place} (keys)", is_case_sensitive)
        _refuse_same_names(kind.valueType, f"{place}[]", is_case_sensitive)


def _structs(
    one: "StructType", other: "StructType", place: str, is_case_sensitive: bool
) -> "StructType":
    from pyspark.sql.types import StructField, StructType

    fields = {_key(field, is_case_sensitive): field for field in one.fields}
    for field in other.fields:
        key = _key(field, is_case_sensitive)
        name, kind = field.name, field.dataType
        if key in fields:
            name = fields[key].name
            path = _path(place, fields[key])
            kind = _types(fields[key].dataType, kind, path, is_case_sensitive)
        else:
            kind = _types(kind, kind, name, is_case_sensitive)
        fields[key] = StructField(name, kind, nullable=True)
    return StructType(list(fields.values()))


def _types(one: "DataType", other: "DataType", place: str, is_case_sensitive: bool) -> "DataType":
    """What holds the values of both. Whether nulls may be is not kept: a column may be missing."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(one, StructType) and isinstance(other, StructType):
        return _structs(one, other, place, is_case_sensitive)
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        element = _types(one.elementType, other.elementType, f"{place}[]", is_case_sensitive)
        return ArrayType(element, containsNull=True)
    if isinstance(one, MapType) and isinstance(other, MapType):
        key = _types(one.keyType, other.keyType, f"{place} (keys)", is_case_sensitive)
        value = _types(one.valueType, other.valueType, f"{place}[]", is_case_sensitive)
        return MapType(key, value, valueContainsNull=True)
    found = _wider(one, other)
    if found is None:
        raise ClashError(place, one.simpleString(), other.simpleString())
    return found


def _wider(one: "DataType", other: "DataType") -> "DataType | None":
    from pyspark.sql.types import DecimalType, DoubleType, NullType

    names = {one.simpleString(), other.simpleString()}
    if len(names) == 1 or isinstance(other, NullType):
        return one
    if isinstance(one, NullType):
        return other
    if names <= set(_WHOLE):
        return max(one, other, key=lambda each: _WHOLE.index(each.simpleString()))
    if names <= _EXACT_IN_DOUBLE:
        return DoubleType()
    if names == {"date", "timestamp_ntz"}:
        return one if one.simpleString() == "timestamp_ntz" else other
    digits = [_digits(each) for each in (one, other)]
    if any(each is None for each in digits):
        return None
    whole = max(each[0] for each in digits if each)
    scale = max(each[1] for each in digits if each)
    return DecimalType(whole + scale, scale) if whole + scale <= _MAX_DIGITS else None


def _digits(kind: "DataType") -> tuple[int, int] | None:
    """Left and right of the point."""
    from pyspark.sql.types import DecimalType

    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale, kind.scale
    whole = _WHOLE_DIGITS.get(kind.simpleString())
    return None if whole is None else (whole, 0)


def _shaped(own: "StructType", wanted: "StructType") -> "StructType":
    """The fields of `own`, in their order, with the types of `wanted`."""
    from pyspark.sql.types import StructField, StructType

    # Either way of looking at case finds it: `wanted` has the fields of `own`.
    types = {field.name.lower(): field.dataType for field in wanted.fields}
    types |= {field.name: field.dataType for field in wanted.fields}
    return StructType(
        [
            StructField(
                field.name,
                _shape(field.dataType, types.get(field.name, types[field.name.lower()])),
                nullable=True,
            )
            for field in own.fields
        ]
    )


def _shape(own: "DataType", wanted: "DataType") -> "DataType":
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(own, StructType) and isinstance(wanted, StructType):
        return _shaped(own, wanted)
    if isinstance(own, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(_shape(own.elementType, wanted.elementType), containsNull=True)
    if isinstance(own, MapType) and isinstance(wanted, MapType):
        key = _shape(own.keyType, wanted.keyType)
        return MapType(key, _shape(own.valueType, wanted.valueType), valueContainsNull=True)
    return wanted


def _key(field: "StructField", is_case_sensitive: bool) -> str:
    return folded(field.name, is_case_sensitive=is_case_sensitive)


def _path(place: str, field: "StructField") -> str:
    return f"{place}.{field.name}" if place else field.name


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
