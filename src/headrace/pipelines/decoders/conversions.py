"""SQL that turns text into values of a type: null where the text is none.

Numbers and booleans are read as Spark casts them, but for what Java alone takes for a number.
Timestamps are ISO 8601 text or whole milliseconds since 1970, which Spark by itself would take for
seconds or for a year.
"""

from collections.abc import Mapping

from headrace.pipelines.decoders.ddl import Array, Atom, Map, SchemaField, Struct, Type

# The years 0001 to 9999: what Python and every table can hold too.
MIN_TIMESTAMP_MS = -62_135_596_800_000
MAX_TIMESTAMP_MS = 253_402_300_799_999
# Spark would also read `10:00` (today!) and `2026`; with a year and a dash it is a date. It has a
# year 0, which nobody else has.
_HAS_YEAR = "{0} like '____-%' and {0} not like '0000%'"
# A time as ISO 8601 has it, and Spark reads none without seconds before a zone.
_MINUTES = "^.{10}[T ]([01][0-9]|2[0-3]):[0-5][0-9]([zZ]|[-+][0-9]{2}:?[0-9]{2})$"
# What Spark leaves out of a time without a zone, if there is one.
_ZONE = "[T ].*[-+A-Za-z]"
# Java takes `5F` and `2d` for numbers, and `0x1p3`: a hexadecimal text would be one by chance.
_JAVAS_OWN = "[0-9.][dfpDFP]"
_INFINITY = "double('infinity')"


def from_text(text: str, kind: Type) -> str:
    """SQL for the value that the SQL `text` stands for."""
    name = kind.ddl
    if name == "string":
        return text
    if name == "binary":
        return f"try_to_binary({text}, 'base64')"
    if name == "timestamp":
        return f"coalesce({_from_millis(text)}, {_if_dated(text, name)})"
    if name in ("date", "timestamp_ntz"):
        return _if_dated(text, name)
    return f"try_cast({text} as {name})"


def no_numbers(texts: Mapping[str, SchemaField], line: str) -> list[str]:
    """SQL conditions: one of these texts was cast to a number that it is not.

    `texts` is SQL for what each field was read from, the field as a column is what came of it, and
    `line` is all of the value. One look at that, and at the numbers, is enough for most: one at
    every text would cost three times what the casts do.
    """
    conditions = []
    for name in ("float", "double"):
        those = {text: each for text, each in texts.items() if each.type.ddl == name}
        if those:
            has_large = " or ".join(f"abs({each.quoted}) = {_INFINITY}" for each in those.values())
            number = f"try_cast(it as {name})"
            is_one = (
                f"(abs({number}) < {_INFINITY} and not it rlike '(?i)[dfp]') "
                "or it rlike '(?i)inf|nan'"
            )
            conditions.append(
                f"({line} rlike '{_JAVAS_OWN}' or {has_large}) and "
                f"exists(array({', '.join(those)}), it -> {number} is not null and not ({is_one}))"
            )
    return conditions


def _from_millis(text: str) -> str:
    number = f"try_cast({text} as bigint)"
    return (
        f"case when {number} between {MIN_TIMESTAMP_MS} and {MAX_TIMESTAMP_MS} "
        f"then timestamp_millis({number}) end"
    )


def _if_dated(text: str, name: str) -> str:
    has_year = _HAS_YEAR.format(text)
    time = f"try_cast({text} as timestamp)"
    # A date takes whatever stands behind it, and a zone may carry a time out of its year.
    condition = {
        "date": f"(length({text}) <= 10 or {time} is not null or {text} rlike '{_MINUTES}')",
        "timestamp_ntz": f"not {text} rlike '{_ZONE}'",
        "timestamp": f"unix_millis({time}) between {MIN_TIMESTAMP_MS} and {MAX_TIMESTAMP_MS}",
    }[name]
    return f"case when {has_year} and {condition} then try_cast({text} as {name}) end"


def as_read(kind: Type) -> Type:
    """The type to have a JSON reader read: dates and times stay text, wherever they are."""
    match kind:
        case Atom("timestamp" | "timestamp_ntz" | "date"):
            return Atom("string")
        case Array(element):
            return Array(as_read(element))
        case Map(key, value):
            return Map(key, as_read(value))
        case Struct(fields):
            return Struct(tuple(SchemaField(each.name, as_read(each.type)) for each in fields))
    return kind


def converted(read: str, kind: Type, depth: int = 0) -> str:
    """SQL for a value of `kind` from one of `as_read(kind)`."""
    if as_read(kind) == kind:
        return read
    it = f"it{depth}"
    match kind:
        case Array(element):
            return f"transform({read}, {it} -> {converted(it, element, depth + 1)})"
        case Map(_, value):
            inner = converted(it, value, depth + 1)
            return f"transform_values({read}, (key{depth}, {it}) -> {inner})"
        case Struct(fields):
            parts = ", ".join(
                f"'{_literal(each.name)}', {converted(f'{read}.{each.quoted}', each.type, depth)}"
                for each in fields
            )
            return f"case when {read} is not null then named_struct({parts}) end"
    return from_text(read, kind)


def is_broken(read: str, kind: Type, depth: int = 0) -> str | None:
    """SQL that holds when something inside cannot be converted or misses what it requires.

    None: nothing can go wrong that the reader itself does not see.
    """
    it = f"it{depth}"
    match kind:
        case Atom("timestamp" | "timestamp_ntz" | "date"):
            return f"({read} is not null and {from_text(read, kind)} is null)"
        case Atom("float" | "double"):
            return f"abs({read}) = {_INFINITY}"  # JSON has no other than what is too large
        case Array(element):
            inner = is_broken(it, element, depth + 1)
            return inner and f"coalesce(exists({read}, {it} -> {inner}), false)"
        case Map(_, value):
            inner = is_broken(it, value, depth + 1)
            return inner and f"coalesce(exists(map_values({read}), {it} -> {inner}), false)"
        case Struct(fields):
            parts = [is_broken(f"{read}.{each.quoted}", each.type, depth) for each in fields]
            parts += [f"{read}.{each.quoted} is null" for each in fields if each.is_required]
            known = " or ".join(filter(None, parts))
            return f"({read} is not null and ({known}))" if known else None
    return None


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
