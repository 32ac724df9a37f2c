r"""One cell of a line as Python sees it: its escapes, and whether it fits a type.

Follows what Spark's casts take; only ever asked about values that they did not take.
"""

import re
from decimal import Decimal as Number

from headrace.pipelines.decoders.conversions import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from headrace.pipelines.decoders.ddl import Decimal, SchemaField
from headrace.pipelines.decoders.json_values import MAX_FLOAT, fits_text, is_base64, shown

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_BOOLEANS = {"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"}
_ESCAPE = re.compile(r"\\([\\tnr])")
_ESCAPED = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}


def unescape_cell(cell: str) -> str | None:
    r"""The text a cell stands for; None for `\N`. An unknown escape stays as it is."""
    if cell == "\\N":
        return None
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], cell)


def find_cell_mismatch(cell: str | None, field: SchemaField) -> str | None:
    """What is wrong with the cell of a field; None: nothing."""
    name = field.type.ddl
    if cell is None or (cell == "" and name != "string"):
        return f"field {field.name} is missing" if field.is_required else None
    if _fits(cell, field):
        return None
    return f"field {field.name}: wanted {name}, got {shown(cell)}"


def _fits(cell: str, field: SchemaField) -> bool:
    name = field.type.ddl
    text = cell.strip()
    if name == "string":
        return True
    if name == "boolean":
        return text.lower() in _BOOLEANS
    if name == "binary":
        return is_base64(cell)
    if name in _BITS:
        limit = 1 << (_BITS[name] - 1)
        return bool(re.fullmatch(r"[+-]?\d+", text)) and -limit <= int(text) < limit
    if name == "timestamp" and re.fullmatch(r"-?\d+", text):
        return MIN_TIMESTAMP_MS <= int(text) <= MAX_TIMESTAMP_MS
    if name in ("date", "timestamp", "timestamp_ntz"):
        return fits_text(cell, field.type)
    try:
        number = Number(text)
    except ArithmeticError:
        return False
    if name in ("float", "double") and number.is_finite():
        return abs(number) <= MAX_FLOAT[name]
    if isinstance(field.type, Decimal):
        return abs(number) < Number(10) ** (field.type.precision - field.type.scale)
    return True
