"""The schema of JSON objects as a sample of them shows it, in Spark's DDL.

What the sample disagrees on becomes a string, which holds any JSON value as its text.
"""

from collections.abc import Iterable, Mapping
from typing import Union

# An object with more members than this is a dictionary by some id, not a record.
MAX_NESTED_FIELDS = 100
MAX_FIELDS = 1000
# Deeper than anybody writes a query for.
MAX_DEPTH = 10

_STRING = "string"
_INT64 = range(-(1 << 63), 1 << 63)

# A scalar's type, a struct's fields, an array's element in a tuple; None: only nulls were seen.
_Shape = Union[str, dict[str, "_Shape"], tuple["_Shape"], None]  # noqa: UP007 - it names itself


def shape_of(objects: Iterable[Mapping[str, object]]) -> str | None:
    """The DDL of all fields of the objects; None if they have none."""
    merged: _Shape = None
    for each in objects:
        merged = _merge(merged, _shape(each, 0))
    if not isinstance(merged, dict) or not merged:
        return None
    # Spark knows no difference between upper and lower case: of two such fields one can be had.
    fields = {name.lower(): (name, shape) for name, shape in reversed(merged.items())}
    chosen = list(reversed(fields.values()))[:MAX_FIELDS]
    return ", ".join(f"{quoted(name)} {_ddl(shape)}" for name, shape in chosen)


def quoted(name: str) -> str:
    """A name as Spark's SQL reads it back, whatever it is made of."""
    return "`" + name.replace("`", "``") + "`"


def _shape(value: object, depth: int) -> _Shape:
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            return "bigint" if value in _INT64 else _STRING
        case float():
            return "double"
        case list() if depth < MAX_DEPTH:
            element: _Shape = None
            for each in value:
                element = _merge(element, _shape(each, depth + 1))
            return (element,)
        case dict() if depth < MAX_DEPTH:
            return {str(name): _shape(each, depth + 1) for name, each in value.items()}
        case _:
            return _STRING


def _merge(one: _Shape, other: _Shape) -> _Shape:
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            name: _merge(one.get(name), other.get(name)) for name in dict.fromkeys([*one, *other])
        }
    if isinstance(one, tuple) and isinstance(other, tuple):
        return (_merge(one[0], other[0]),)
    if {str(one), str(other)} == {"bigint", "double"}:
        return "double"
    return _STRING


def _ddl(shape: _Shape) -> str:
    if shape is None:
        return _STRING
    if isinstance(shape, str):
        return shape
    if isinstance(shape, tuple):
        return f"array<{_ddl(shape[0])}>"
    names = {name.lower() for name in shape}
    if not shape or len(shape) > MAX_NESTED_FIELDS or len(names) < len(shape):
        return _STRING
    inner = ", ".join(f"{quoted(name)}: {_ddl(each)}" for name, each in shape.items())
    return f"struct<{inner}>"
