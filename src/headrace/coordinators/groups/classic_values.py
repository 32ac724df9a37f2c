"""The value of a classic group's record, versions 0-4; Kafka 4.3 writes version 3.

v1 the rebalance time-out, v2 the time of the last change, v3 static members, v4 is flexible.
"""

from functools import partial

from headrace.coordinators.groups.fields import (
    INT16,
    INT32,
    INT64,
    FieldReader,
    write_bytes,
    write_nullable_string,
    write_string,
)
from headrace.coordinators.groups.records import ClassicMember, GroupMetadata
from headrace.records.errors import InvalidRecordError

_WRITTEN = 3
_NEWEST = 4


def encode_group(group: GroupMetadata) -> bytes:
    return b"".join(
        (
            INT16.pack(_WRITTEN),
            write_string(group.protocol_type),
            INT32.pack(group.generation_id),
            write_nullable_string(group.protocol_name),
            write_nullable_string(group.leader),
            INT64.pack(group.state_timestamp_ms),
            INT32.pack(len(group.members)),
            *map(_encode_member, group.members),
        )
    )


def _encode_member(member: ClassicMember) -> bytes:
    return b"".join(
        (
            write_string(member.member_id),
            write_nullable_string(member.group_instance_id),
            write_string(member.client_id),
            write_string(member.client_host),
            INT32.pack(member.rebalance_timeout_ms),
            INT32.pack(member.session_timeout_ms),
            write_bytes(member.subscription),
            write_bytes(member.assignment),
        )
    )


def decode_group(group_id: str, value: bytes) -> GroupMetadata:
    version = FieldReader(value).int16()
    if not 0 <= version <= _NEWEST:
        raise InvalidRecordError(f"version {version} of a group's metadata is unknown")
    fields = FieldReader(value, 2, is_compact=version >= 4)
    group = GroupMetadata(
        group_id=group_id,
        protocol_type=fields.string(),
        generation_id=fields.int32(),
        protocol_name=fields.nullable_string(),
        leader=fields.nullable_string(),
        state_timestamp_ms=fields.int64() if version >= 2 else -1,
        members=fields.array(partial(_decode_member, fields, version)),
    )
    if version >= 4:
        fields.tags()
    return group


def _decode_member(fields: FieldReader, version: int) -> ClassicMember:
    member_id = fields.string()
    group_instance_id = fields.nullable_string() if version >= 3 else None
    client_id, client_host = fields.string(), fields.string()
    first_timeout_ms = fields.int32()
    # Version 0 has one time-out for both.
    session_timeout_ms = fields.int32() if version >= 1 else first_timeout_ms
    subscription, assignment = fields.blob(), fields.blob()
    if version >= 4:
        fields.tags()
    return ClassicMember(
        member_id,
        group_instance_id,
        client_id,
        client_host,
        first_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )
