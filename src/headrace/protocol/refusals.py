"""An answer that says "error" to everything a request asked for, whatever the API.

A response mirrors its request: an error code is put wherever the response has one, the
topics, partitions and groups that were asked for are repeated, the rest takes its default.
For tests that want to see a client meet an error; handlers refuse with reasons of their own.
"""

from types import SimpleNamespace
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from headrace.protocol.entity_reader import Cursor, entity_reader
from headrace.protocol.entity_writer import entity_writer
from headrace.protocol.schema import FieldShape, fields_of

# The same thing under the names that different messages give it.
_SYNONYMS = (
    ("partition_index", "partition", "index"),
    ("name", "topic", "topic_name", "key", "group_id", "resource_name"),
)


def encode_refusal(api_key: int, version: int, payload: bytes, code: ErrorCode) -> bytes:
    """The body of an answer to the request body `payload` that carries `code` throughout."""
    request_type = load_request_schema(api_key, version)
    request = entity_reader(request_type, request_type)(Cursor(payload, 0))
    response_type = load_response_schema(api_key, version)
    out = bytearray()
    entity_writer(response_type)(out, _mirror(response_type, request, code))
    return bytes(out)


def _mirror(response_type: Any, request: Any, code: ErrorCode) -> Any:
    mirrored = SimpleNamespace()
    for field in fields_of(response_type):
        value = _value(field, request, code)
        if value is not None:
            setattr(mirrored, field.name, value)
    return mirrored


def _value(field: FieldShape, request: Any, code: ErrorCode) -> Any:
    if field.kafka_type == "error_code":
        return code
    if field.is_entity:
        if not field.is_array:
            return None
        items = _asked(field, request) if _carries_error(field.item) else ()
        return tuple(_mirror(field.item, item, code) for item in items)
    if field.is_array:
        return None
    return _same(field, request)


def _carries_error(entity_type: Any) -> bool:
    return any(
        field.kafka_type == "error_code" or (field.is_entity and _carries_error(field.item))
        for field in fields_of(entity_type)
    )


def _asked(field: FieldShape, request: Any) -> tuple[Any, ...]:
    """What the request lists at this level: by the same name, or its first list."""
    lists = {
        name: value
        for name in _names(request)
        if isinstance(value := getattr(request, name), tuple)
    }
    return lists.get(field.name) or next(iter(lists.values()), ())


def _same(field: FieldShape, request: Any) -> Any:
    if isinstance(request, str):
        return request if field.kafka_type == "string" and field.name in _SYNONYMS[1] else None
    if isinstance(request, int):
        return request if field.name in _SYNONYMS[0] else None
    for names in ((field.name,), *(names for names in _SYNONYMS if field.name in names)):
        for name in names:
            value = getattr(request, name, None)
            if value is not None and not isinstance(value, tuple):
                return value
    return None


def _names(request: Any) -> list[str]:
    if isinstance(request, str | int):
        return []
    return [field.name for field in fields_of(type(request))]
