"""Reads a message at the version it was sent and builds it as another version's type.

Requests are *lifted* to the newest type this way: absent fields take the
schema's default, fields the newest type has lost are read and dropped.
Everything is bounds-checked; no length is believed before the bytes are seen.
"""

import datetime
from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from headrace.protocol.errors import WireError
from headrace.protocol.primitives import (
    MAX_TAGGED_FIELDS,
    read_array_length,
    read_span,
    read_string,
    read_uvarint,
)
from headrace.protocol.schema import MILLISECOND, FieldShape, fields_of

# The most array elements one request may hold: 5,000 partitions with room to
# spare, and still under a fifth of a second to read.
MAX_ELEMENTS = 100_000
_ZERO_UUID = UUID(int=0)
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


class Cursor:
    """A position in one request."""

    __slots__ = ("buffer", "elements_left", "end", "position")

    def __init__(self, buffer: bytes, position: int) -> None:
        self.buffer = buffer
        self.position = position
        self.end = len(buffer)
        self.elements_left = MAX_ELEMENTS

    def uvarint(self) -> int:
        """Read an unsigned varint."""
        value, self.position = read_uvarint(self.buffer, self.position, self.end)
        return value

    def take(self, size: int) -> bytes:
        """Read `size` bytes."""
        start = self.position
        if start + size > self.end:
            raise WireError(f"message ends {start + size - self.end} bytes early")
        self.position = start + size
        return self.buffer[start : start + size]

    def array_length(self, is_flexible: bool) -> int:
        """Read an array's length; -1 is null."""
        length, position = read_array_length(
            self.buffer, self.position, self.end, is_compact=is_flexible
        )
        is_null = not length and self.buffer[self.position] != (1 if is_flexible else 0)
        self.position = position
        self.elements_left -= length
        if self.elements_left < 0:
            raise WireError(f"more than {MAX_ELEMENTS} array elements in one request")
        return -1 if is_null else length


Reader = Callable[[Cursor], Any]


@cache
def entity_reader(source: Any, target: Any) -> Reader:
    """Compile a reader of `source`'s bytes that returns a `target`."""
    wanted = {field.name: field for field in fields_of(target)}
    plain: list[tuple[str | None, Reader]] = []
    tagged: dict[int, tuple[str | None, Reader]] = {}
    constants = {field.name: field.default for field in wanted.values()}
    for field in fields_of(source):
        new = wanted.get(field.name)
        item = new.item if new is not None else field.item
        reader = _field_reader(field, item, source.__flexible__)
        name = field.name if new is not None else None
        if field.tag is None:
            plain.append((name, reader))
            constants.pop(field.name, None)
        else:
            tagged[field.tag] = (name, reader)

    def read(cursor: Cursor) -> Any:
        values = dict(constants)
        for name, reader in plain:
            value = reader(cursor)
            if name is not None:
                values[name] = value
        if source.__flexible__:
            _read_tags(cursor, tagged, values)
        return target(**values)

    return read


def _read_tags(
    cursor: Cursor, tagged: dict[int, tuple[str | None, Reader]], values: dict[str, object]
) -> None:
    count = cursor.uvarint()
    if count > MAX_TAGGED_FIELDS:
        raise WireError(f"{count} tagged fields; a structure may have {MAX_TAGGED_FIELDS}")
    for _ in range(count):
        tag, size = cursor.uvarint(), cursor.uvarint()
        content = cursor.take(size)
        if tag in tagged:
            name, reader = tagged[tag]
            inner = Cursor(content, 0)
            inner.elements_left = cursor.elements_left
            value = reader(inner)
            cursor.elements_left = inner.elements_left
            if name is not None:
                values[name] = value


def _field_reader(field: FieldShape, item: Any, is_flexible: bool) -> Reader:
    is_nullable = field.is_nullable and not field.is_array
    if field.is_entity:
        reader = entity_reader(field.item, item)
        if is_nullable:
            reader = _nullable_entity(reader)
    else:
        reader = _primitive_reader(field, is_flexible, is_nullable)
    return _array_reader(field, reader, is_flexible) if field.is_array else reader


def _nullable_entity(read: Reader) -> Reader:
    return lambda cursor: None if cursor.take(1)[0] >= 0x80 else read(cursor)


def _array_reader(field: FieldShape, read_item: Reader, is_flexible: bool) -> Reader:
    def read(cursor: Cursor) -> Any:
        length = cursor.array_length(is_flexible)
        if length < 0:
            if not field.is_nullable:
                raise WireError(f"{field.name} must not be null")
            return None
        return tuple([read_item(cursor) for _ in range(length)])

    return read


def _primitive_reader(field: FieldShape, is_flexible: bool, is_nullable: bool) -> Reader:
    kafka_type = field.kafka_type
    if kafka_type == "string":
        return _string_reader(field, is_flexible, is_nullable)
    if kafka_type in ("bytes", "records"):
        return _bytes_reader(field, is_flexible, is_nullable)
    if kafka_type == "uuid":
        return _read_uuid
    struct, convert = _FIXED[kafka_type]
    size, unpack = struct.size, struct.unpack
    if convert is None:
        return lambda cursor: unpack(cursor.take(size))[0]
    return lambda cursor: convert(unpack(cursor.take(size))[0])


def _string_reader(field: FieldShape, is_flexible: bool, is_nullable: bool) -> Reader:
    def read(cursor: Cursor) -> str | None:
        raw, cursor.position = read_string(
            cursor.buffer, cursor.position, cursor.end, is_compact=is_flexible
        )
        if raw is None:
            if not is_nullable:
                raise WireError(f"{field.name} must not be null")
            return None
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise WireError(f"{field.name} is not UTF-8: {raw[:40]!r}") from None

    return read


def _bytes_reader(field: FieldShape, is_flexible: bool, is_nullable: bool) -> Reader:
    def read(cursor: Cursor) -> bytes | None:
        start, cursor.position = read_span(
            cursor.buffer, cursor.position, cursor.end, is_compact=is_flexible
        )
        if start is None and not is_nullable:
            raise WireError(f"{field.name} must not be null")
        return None if start is None else cursor.buffer[start : cursor.position]

    return read


def _read_uuid(cursor: Cursor) -> UUID | None:
    value = UUID(bytes=cursor.take(16))
    return None if value == _ZERO_UUID else value


def _error_code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        raise WireError(f"unknown error code {number}") from None


def _datetime(millis: int) -> datetime.datetime | None:
    try:
        return None if millis == -1 else _EPOCH + millis * MILLISECOND
    except OverflowError:
        raise WireError(f"timestamp {millis} is beyond the calendar") from None


_FIXED: dict[str, tuple[Struct, Callable[[Any], Any] | None]] = {
    "int8": (Struct(">b"), None),
    "int16": (Struct(">h"), None),
    "int32": (Struct(">i"), None),
    "int64": (Struct(">q"), None),
    "uint8": (Struct(">B"), None),
    "uint16": (Struct(">H"), None),
    "uint32": (Struct(">I"), None),
    "uint64": (Struct(">Q"), None),
    "float64": (Struct(">d"), None),
    "bool": (Struct(">?"), None),
    "error_code": (Struct(">h"), _error_code),
    "timedelta_i32": (Struct(">i"), lambda millis: millis * MILLISECOND),
    "timedelta_i64": (
        Struct(">q"),
        lambda millis: max(-_MAX_MS, min(millis, _MAX_MS)) * MILLISECOND,
    ),
    "datetime_i64": (Struct(">q"), _datetime),
}
# Longer waits than a timedelta can hold are as good as the longest one.
_MAX_MS = 86_400_000 * 999_999_998
