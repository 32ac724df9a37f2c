"""A record of `__consumer_offsets` in the form DumpLogSegments' `--offsets-decoder` prints."""

import base64
from typing import cast

from headrace.cli.log.group_schemas import SCHEMAS
from headrace.cli.log.json_schema import Field, Json, Schema, blob
from headrace.coordinators.groups.fields import FieldReader
from headrace.records.errors import InvalidRecordError
from headrace.records.record import Record


def decode_offsets(record: Record) -> dict[str, object]:
    """Fields `key` and `payload`: JSON objects, or a sentence as `key` when it is none of ours."""
    key, value = record.key, record.value
    if key is None:
        return {
            "key": f"Error at offset {record.offset}, skipping. It has no key.",
            "payload": None,
        }
    try:
        number = FieldReader(key).int16()
        if number not in SCHEMAS:
            sentence = f"Unknown record type {number} at offset {record.offset}, skipping."
            return {"key": sentence, "payload": None}
        key_fields, schema = SCHEMAS[number]
        return {
            "key": {"type": str(number), "data": _read_key(key_fields, key)},
            "payload": None if value is None else _read_value(schema, value),
        }
    except InvalidRecordError as error:
        return {"key": f"Error at offset {record.offset}, skipping. {error}", "payload": None}


def _read_key(key_fields: tuple[Field, ...], key: bytes) -> dict[str, Json]:
    fields = FieldReader(key, 2)
    return {field.name: field.read(fields) for field in key_fields}


def _read_value(schema: Schema, value: bytes) -> dict[str, Json]:
    version = FieldReader(value).int16()
    if version not in schema.versions:
        raise InvalidRecordError(f"version {version} is unknown")
    is_compact = version >= schema.flexible_since
    data = schema.read(FieldReader(value, 2, is_compact=is_compact), version)
    if data.get("protocolType") == "consumer":
        for member in cast(list[dict[str, Json]], data["members"]):
            _open_blob(member, "subscription", _SUBSCRIPTION)
            _open_blob(member, "assignment", _ASSIGNMENT)
    return {"version": str(version), "data": data}


def _open_blob(member: dict[str, Json], name: str, schema: Schema) -> None:
    """Show what a consumer put there; what cannot be read stays base64."""
    data = base64.b64decode(str(member[name]))
    try:
        version = FieldReader(data).int16()
        if version in schema.versions:
            member[name] = schema.read(FieldReader(data, 2), version)
    except InvalidRecordError:
        return


def _read_topic(fields: FieldReader) -> Json:
    return {"topic": fields.string(), "partitions": list(fields.array(fields.int32))}


def _read_topics(fields: FieldReader) -> Json:
    return list(fields.array(lambda: _read_topic(fields)))


# What Kafka's consumers put into a classic group's members (ConsumerProtocol).
_SUBSCRIPTION = Schema(
    (
        Field("topics", lambda fields: list(fields.array(fields.string))),
        Field("userData", blob),
        Field("ownedPartitions", _read_topics, since=1),
        Field("generationId", FieldReader.int32, since=2),
        Field("rackId", FieldReader.nullable_string, since=3),
    ),
    versions=range(4),
)
_ASSIGNMENT = Schema(
    (Field("assignedPartitions", _read_topics), Field("userData", blob)),
    versions=range(4),
)
