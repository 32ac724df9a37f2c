"""How a schema of Kafka's is written down here, and how a message in it becomes JSON.

A field that a version lacks and a tagged field at its default are left out, as Kafka's own
tools do.
"""

import base64
from collections.abc import Callable, Mapping
from typing import NamedTuple

from headrace.coordinators.groups.fields import FieldReader

Json = object
Read = Callable[[FieldReader], Json]
MAX_VERSION = 2**15


class Field(NamedTuple):
    """One field of a structure and the versions that have it, from `since` to `until`."""

    name: str
    read: Read
    since: int = 0
    until: int = MAX_VERSION


class Tag(NamedTuple):
    """A tagged field; it is not printed at its default."""

    name: str
    read: Read
    default: Json


class Schema(NamedTuple):
    """A structure. Versions from `flexible_since` on are compact and end in tagged fields."""

    fields: tuple[Field, ...]
    tags: Mapping[int, Tag] = {}
    versions: range = range(1)
    flexible_since: int = 0

    def read(self, fields: FieldReader, version: int = 0) -> dict[str, Json]:
        found = {
            field.name: field.read(fields)
            for field in self.fields
            if field.since <= version <= field.until
        }
        if not fields.is_compact:
            return found
        for number, raw in fields.tags().items():
            tag = self.tags.get(number)
            if tag is not None:
                value = tag.read(FieldReader(raw, is_compact=True))
                if value != tag.default:
                    found[tag.name] = value
        return found


def int8(fields: FieldReader) -> Json:
    return fields.int8()


def int16(fields: FieldReader) -> Json:
    return fields.int16()


def uint16(fields: FieldReader) -> Json:
    return fields.int16() & 0xFFFF


def int32(fields: FieldReader) -> Json:
    return fields.int32()


def int64(fields: FieldReader) -> Json:
    return fields.int64()


def text(fields: FieldReader) -> Json:
    return fields.nullable_string()


def blob(fields: FieldReader) -> Json:
    data = fields.nullable_blob()
    return None if data is None else base64.b64encode(data).decode()


def uuid(fields: FieldReader) -> Json:
    return base64.urlsafe_b64encode(fields.uuid().bytes).decode().rstrip("=")


def list_of(read: Read) -> Read:
    return lambda fields: list(fields.array(lambda: read(fields)))


def struct(*members: tuple[str, Read], tags: Mapping[int, Tag] | None = None) -> Read:
    return Schema(tuple(Field(*member) for member in members), tags or {}).read


def nullable(read: Read) -> Read:
    """A structure behind a byte that says whether it is there."""
    return lambda fields: read(fields) if fields.int8() > 0 else None


def fields_of(*members: tuple[str, Read]) -> tuple[Field, ...]:
    return tuple(Field(*member) for member in members)
