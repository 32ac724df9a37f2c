"""Writes any object as a message type of kio's has it: responses are *lowered* this way.

The object needs only the fields it has something to say about; the others
take the schema's default. A field the version does not know is left out.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any
from uuid import UUID

from headrace.protocol.primitives import write_uvarint
from headrace.protocol.schema import MILLISECOND, FieldShape, fields_of

Writer = Callable[[bytearray, Any], None]
_ZERO_UUID = UUID(int=0)


@cache
def entity_writer(entity_type: Any) -> Writer:
    """Compile a writer that takes any object having (some of) the type's fields."""
    is_flexible: bool = entity_type.__flexible__
    plain: list[tuple[str, object, Writer]] = []
    tagged: list[tuple[int, str, object, Writer]] = []
    for field in fields_of(entity_type):
        writer = _field_writer(field, is_flexible)
        if field.tag is None:
            plain.append((field.name, field.default, writer))
        else:
            tagged.append((field.tag, field.name, field.default, writer))
    tagged.sort(key=lambda row: row[0])

    def write(out: bytearray, entity: Any) -> None:
        for name, default, writer in plain:
            writer(out, getattr(entity, name, default))
        if is_flexible:
            _write_tags(out, entity, tagged)

    return write


def _write_tags(out: bytearray, entity: Any, tagged: list[tuple[int, str, object, Writer]]) -> None:
    present = [
        (tag, writer, value)
        for tag, name, default, writer in tagged
        if (value := getattr(entity, name, default)) != default
    ]
    out += write_uvarint(len(present))
    for tag, writer, value in present:
        content = bytearray()
        writer(content, value)
        out += write_uvarint(tag) + write_uvarint(len(content)) + content


def _field_writer(field: FieldShape, is_flexible: bool) -> Writer:
    # In an array nullability belongs to the array; a tagged field is absent, not null.
    is_nullable = field.is_nullable and not field.is_array
    if field.is_entity:
        item = entity_writer(field.item)
        if is_nullable:
            item = _nullable_entity(item)
    else:
        item = _primitive_writer(field.kafka_type, is_flexible, is_nullable and field.tag is None)
    return _array_writer(item, is_flexible) if field.is_array else item


def _nullable_entity(write: Writer) -> Writer:
    def write_nullable(out: bytearray, value: Any) -> None:
        if value is None:
            out += b"\xff"
        else:
            out += b"\x01"
            write(out, value)

    return write_nullable


def _array_writer(write_item: Writer, is_flexible: bool) -> Writer:
    def write_compact(out: bytearray, items: Any) -> None:
        out += b"\0" if items is None else write_uvarint(len(items) + 1)
        for item in items or ():
            write_item(out, item)

    def write_legacy(out: bytearray, items: Any) -> None:
        out += (-1 if items is None else len(items)).to_bytes(4, "big", signed=True)
        for item in items or ():
            write_item(out, item)

    return write_compact if is_flexible else write_legacy


def _primitive_writer(kafka_type: str, is_flexible: bool, is_nullable: bool) -> Writer:
    if kafka_type in _CONVERTED:
        return _CONVERTED[kafka_type]
    if kafka_type in ("string", "bytes", "records"):
        return _bytes_writer(kafka_type, is_flexible, is_nullable)
    return _pack_writer(Struct(_STRUCTS[kafka_type]))


_STRUCTS = {
    "int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "bool": ">?", "float64": ">d",
    "uint8": ">B", "uint16": ">H", "uint32": ">I", "uint64": ">Q",
}  # fmt: skip


def _pack_writer(struct: Struct) -> Writer:
    pack = struct.pack

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return write


def _bytes_writer(kafka_type: str, is_flexible: bool, is_nullable: bool) -> Writer:
    width = 2 if kafka_type == "string" else 4

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            if not is_nullable:
                raise ValueError(f"null in a {kafka_type} field that cannot be null")
            out += b"\0" if is_flexible else b"\xff" * width
            return
        raw = value.encode() if isinstance(value, str) else value
        out += write_uvarint(len(raw) + 1) if is_flexible else len(raw).to_bytes(width, "big")
        out += raw

    return write


def _write_uuid(out: bytearray, value: Any) -> None:
    out += (value or _ZERO_UUID).bytes


def _write_error_code(out: bytearray, value: Any) -> None:
    out += int(value).to_bytes(2, "big", signed=True)


def _write_timedelta_i32(out: bytearray, value: Any) -> None:
    out += (value // MILLISECOND).to_bytes(4, "big", signed=True)


def _write_timedelta_i64(out: bytearray, value: Any) -> None:
    out += (value // MILLISECOND).to_bytes(8, "big", signed=True)


def _write_datetime_i64(out: bytearray, value: Any) -> None:
    millis = -1 if value is None else round(value.timestamp() * 1000)
    out += millis.to_bytes(8, "big", signed=True)


_CONVERTED: dict[str, Writer] = {
    "uuid": _write_uuid,
    "error_code": _write_error_code,
    "timedelta_i32": _write_timedelta_i32,
    "timedelta_i64": _write_timedelta_i64,
    "datetime_i64": _write_datetime_i64,
}
