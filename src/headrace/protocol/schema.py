"""What kio's message types say about the wire: their fields, taken apart once per type.

kio generates one dataclass per message and version from Kafka's own schemas.
Only these types are used, not kio's reader and writer: the reader refuses
unknown tagged fields, which must be skipped (KIP-482), and takes an array's
length on trust, so that eight bytes from a stranger can end the process.
"""

import dataclasses
import datetime
import types
from typing import Any, NamedTuple, get_args, get_origin

from kio.schema.errors import ErrorCode

MILLISECOND = datetime.timedelta(milliseconds=1)

_ZERO_BY_TYPE: dict[str, object] = {
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": None,
    "bool": False,
    "error_code": ErrorCode.none,
    "timedelta_i32": datetime.timedelta(0),
    "timedelta_i64": datetime.timedelta(0),
    "datetime_i64": None,
    "float64": 0.0,
}


class FieldShape(NamedTuple):
    """One field. `kafka_type` is empty for structures; `item` is then the type of one."""

    name: str
    kafka_type: str
    item: Any
    is_array: bool
    is_nullable: bool
    tag: int | None
    default: object

    @property
    def is_entity(self) -> bool:
        """The field holds structures, not primitives."""
        return not self.kafka_type


def fields_of(entity_type: Any) -> list[FieldShape]:
    """The fields of a message type in wire order."""
    return [_shape(field) for field in dataclasses.fields(entity_type)]


def _shape(field: Any) -> FieldShape:
    kind, is_nullable = _strip_none(field.type)
    is_array = get_origin(kind) is tuple
    if is_array:
        kind, _ = _strip_none(get_args(kind)[0])
    is_entity = dataclasses.is_dataclass(kind)
    kafka_type = "" if is_entity else field.metadata["kafka_type"]
    if kafka_type == "uuid":
        is_nullable = False  # the zero id stands for none
    default = field.default
    if default is dataclasses.MISSING:
        default = _zero(kafka_type, kind, is_array, is_nullable)
    return FieldShape(
        field.name, kafka_type, kind, is_array, is_nullable, field.metadata.get("tag"), default
    )


def _zero(kafka_type: str, kind: Any, is_array: bool, is_nullable: bool) -> object:
    if is_nullable:
        return None
    if is_array:
        return ()
    if kafka_type:
        return _ZERO_BY_TYPE.get(kafka_type, 0)
    return kind(**{field.name: field.default for field in fields_of(kind)})


def _strip_none(kind: Any) -> tuple[Any, bool]:
    if isinstance(kind, types.UnionType):
        return next(arg for arg in get_args(kind) if arg is not types.NoneType), True
    return kind, False
