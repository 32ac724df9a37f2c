"""Whether a parsed JSON value fits a type of a schema, and if not, a sentence on where it does not.

Follows what Spark's reader takes; only ever asked about values that it did not take.
"""

import base64
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal as Number

from headrace.pipelines.decoders.conversions import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from headrace.pipelines.decoders.ddl import Array, Atom, Decimal, Map, SchemaField, Struct, Type

MAX_FLOAT = {"float": Number("3.4028235e38"), "double": Number("1.7976931348623157e308")}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_SHOWN = 60  # characters of a value: enough to know it again
_YEAR = re.compile(r"\d{4}-")


def find_mismatch(value: object, field: SchemaField, is_there: bool, path: str = "") -> str | None:
    """What is wrong with the value of a field; None: nothing."""
    name = f"{path}{field.name}"
    if value is None:
        if not field.is_required:
            return None
        return f"field {name} is null" if is_there else f"field {name} is missing"
    return _mismatch(value, field.type, name)


def kind_of(value: object) -> str:
    """What JSON calls it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    return "an object" if isinstance(value, dict) else "a number"


def shown(value: object) -> str:
    """The value as JSON, cut where it gets long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def fits_text(text: str, kind: Type) -> bool:
    """Whether text can be read as a date or time of this type."""
    if not _YEAR.match(text):
        return False
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None and kind == Atom("timestamp"):
            time.astimezone(UTC)  # a zone may carry it out of its year
    except (ValueError, OverflowError):
        return False
    return time.tzinfo is None or kind != Atom("timestamp_ntz")


def _mismatch(value: object, kind: Type, name: str) -> str | None:
    match kind:
        case Struct(fields) if isinstance(value, dict):
            return _first(
                find_mismatch(value.get(each.name), each, each.name in value, f"{name}.")
                for each in fields
            )
        case Array(element) if isinstance(value, list):
            return _first(
                _mismatch(each, element, f"{name}[{index}]")
                for index, each in enumerate(value)
                if each is not None
            )
        case Map(_, inner) if isinstance(value, dict):
            return _first(
                _mismatch(each, inner, f"{name}.{key}")
                for key, each in value.items()
                if each is not None
            )
    return None if _fits(value, kind) else f"field {name}: wanted {kind.ddl}, got {shown(value)}"


def _fits(value: object, kind: Type) -> bool:
    name = kind.ddl
    if name == "string":
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name in _BITS:
        limit = 1 << (_BITS[name] - 1)
        return isinstance(value, int) and -limit <= value < limit
    if name in ("float", "double"):
        return isinstance(value, int | float) and abs(Number(value)) <= MAX_FLOAT[name]
    if isinstance(kind, Decimal):
        return _fits_decimal(value, kind)
    if name == "timestamp" and _is_whole(value):
        return MIN_TIMESTAMP_MS <= int(str(value)) <= MAX_TIMESTAMP_MS
    if not isinstance(value, str):
        return False
    if name == "binary":
        return is_base64(value)
    return name in ("date", "timestamp", "timestamp_ntz") and fits_text(value, kind)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value.lstrip("-").isdecimal())


def _fits_decimal(value: object, kind: Decimal) -> bool:
    try:
        number = Number(str(value))
    except ArithmeticError:
        return False
    return abs(number) < Number(10) ** (kind.precision - kind.scale)


def is_base64(text: str) -> bool:
    """Whether text is base64 as Spark reads it."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _first(complaints: Iterable[str | None]) -> str | None:
    return next((each for each in complaints if each), None)
