"""Records of `__consumer_offsets` as bytes, in the schemas of Kafka 4.3.1.

A key starts with a number that says what kind of record it is, a value with its version. All
versions that Kafka 4.3.1 reads are read, and the one it writes is written, so the bytes of a
record that it wrote come out of `encode(decode(…))` unchanged.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from struct import Struct, error
from typing import Any, NamedTuple
from uuid import UUID

from headrace.coordinators.groups import consumer_values
from headrace.coordinators.groups.fields import (
    INT16,
    INT32,
    INT64,
    FieldReader,
    topic_id_of,
    write_bytes,
    write_compact_bytes,
    write_nullable_string,
    write_string,
)
from headrace.coordinators.groups.records import (
    ClassicMember,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    ResolvedRegex,
    TargetAssignmentEpoch,
    TargetAssignmentMember,
    Tombstone,
)
from headrace.records.errors import InvalidRecordError

_OFFSET_COMMIT = b"\x00\x01"
_OFFSET_COMMITS = (_OFFSET_COMMIT, b"\x00\x00")  # the second is from before Kafka 0.9

# A group's commits name the same few partitions again and again.
_KEYS_REMEMBERED = 4096

_NEWEST_COMMIT = 4
_COMMIT_HEAD = Struct(">hqi")  # version, offset, leader epoch
_COMMIT_HEAD_AND_LENGTH = Struct(">hqiB")
_OLD_COMMIT_HEAD = Struct(">hq")
_EXPIRY = Struct(">qq")
_TIME_AND_NO_TAGS = Struct(">qB")
_TIME_AND_TOPIC_ID = Struct(">q3s16s")
_TOPIC_ID_TAG = b"\x01\x00\x10"  # one tagged field, its number, its size
_SHORTEST_COMMIT = 24  # no metadata and no tagged field
_NO_TOPIC_ID = bytes(16)
_new_tuple = tuple.__new__
_WRITTEN_GROUP = 3
_NEWEST_GROUP = 4

_CommitKey = tuple[str, str, int]


class _Kind(NamedTuple):
    """How one kind of record is written: `key_size` strings are its key."""

    number: int
    record_type: type
    key_size: int
    encode_value: Callable[[Any], bytes]
    decode_value: Callable[..., GroupRecord]


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value of a record to append; a tombstone's value is None."""
    if isinstance(record, OffsetCommit):
        return _encode_commit_key(record[0], record[1], record[2]), _encode_commit(record)
    if isinstance(record, Tombstone):
        if record.kind is OffsetCommit:
            return _encode_commit_key(*record.key), None
        kind = _BY_TYPE[record.kind]
        return _encode_key(kind, record.key), None
    kind = _BY_TYPE[type(record)]
    return _encode_key(kind, record[: kind.key_size]), kind.encode_value(record)


def decode(key: bytes, value: bytes | None) -> GroupRecord | None:
    """The record that was written so; None when it is of a kind that is not kept here.

    InvalidRecordError: it is damaged, or of a version that Kafka 4.3.1 does not know.
    """
    if key[:2] in _OFFSET_COMMITS:
        commit_key = _decode_commit_key(key)
        if value is None:
            return Tombstone(OffsetCommit, commit_key)
        return _decode_commit(commit_key, value)
    fields = FieldReader(key)
    kind = _BY_NUMBER.get(fields.int16())
    if kind is None:
        return None
    names = tuple(fields.string() for _ in range(kind.key_size))
    if value is None:
        return Tombstone(kind.record_type, names)
    return kind.decode_value(*names, value)


def _encode_key(kind: _Kind, names: tuple[Any, ...]) -> bytes:
    if len(names) != kind.key_size:
        raise InvalidRecordError(f"{kind.record_type.__name__} has a key of {kind.key_size} names")
    return INT16.pack(kind.number) + b"".join(map(write_string, names))


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _encode_commit_key(group_id: str, topic: str, partition: int) -> bytes:
    return _OFFSET_COMMIT + write_string(group_id) + write_string(topic) + INT32.pack(partition)


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _decode_commit_key(key: bytes) -> _CommitKey:
    fields = FieldReader(key, 2)
    return fields.string(), fields.string(), fields.int32()


def _encode_commit(commit: OffsetCommit) -> bytes:
    """The value of an offset commit, versions 0-4, in the one that Kafka 4.3 would take.

    v1 alone has an expiry of its own, so it is still written for commits that name one, and v4
    (flexible, tag 0 is the topic's id) for all others. These have to be quick.
    """
    offset, leader_epoch, text, time_ms, expire_ms, topic_id = commit[3:]
    if expire_ms != -1:
        head = _OLD_COMMIT_HEAD.pack(1, offset)
        return head + write_string(text) + _EXPIRY.pack(time_ms, expire_ms)
    raw = text.encode()
    head = _COMMIT_HEAD.pack(_NEWEST_COMMIT, offset, leader_epoch)
    if topic_id is None:
        return head + write_compact_bytes(raw) + _TIME_AND_NO_TAGS.pack(time_ms, 0)
    tail = _TIME_AND_TOPIC_ID.pack(time_ms, _TOPIC_ID_TAG, topic_id.bytes)
    return head + write_compact_bytes(raw) + tail


def _decode_commit(key: _CommitKey, value: bytes) -> OffsetCommit:
    """The commit of `key` that `value` holds, whichever version it has."""
    # The newest version with short metadata is nearly every record there is.
    if value[:2] != b"\x00\x04" or len(value) < _SHORTEST_COMMIT:
        return _decode_commit_slowly(key, value)
    _, offset, leader_epoch, length = _COMMIT_HEAD_AND_LENGTH.unpack_from(value)
    end = 14 + length  # the compact length counts one more than there is
    tags_at = end + 8
    if not 0 < length < 0x80 or tags_at >= len(value):
        return _decode_commit_slowly(key, value)
    topic_id: UUID | None = None
    if value[tags_at]:
        if value[tags_at : tags_at + 3] != _TOPIC_ID_TAG or len(value) != tags_at + 19:
            return _decode_commit_slowly(key, value)
        topic_id = topic_id_of(value[tags_at + 3 :])
    try:
        text = value[15:end].decode() if length > 1 else ""
    except UnicodeDecodeError:
        raise InvalidRecordError("the metadata of a commit is not UTF-8") from None
    (time_ms,) = INT64.unpack_from(value, end)
    # Past OffsetCommit's own constructor: a load runs this for every commit there is.
    fields = (*key, offset, leader_epoch, text, time_ms, -1, topic_id)
    return _new_tuple(OffsetCommit, fields)


def _decode_commit_slowly(key: _CommitKey, value: bytes) -> OffsetCommit:
    try:
        (version,) = INT16.unpack_from(value)
    except error:
        raise InvalidRecordError("an offset commit has no version") from None
    if not 0 <= version <= _NEWEST_COMMIT:
        raise InvalidRecordError(f"version {version} of an offset commit is unknown")
    fields = FieldReader(value, 2, is_compact=version >= 4)
    offset = fields.int64()
    leader_epoch = fields.int32() if version >= 3 else -1
    text = fields.string()
    time_ms = fields.int64()
    expire_ms = fields.int64() if version == 1 else -1
    topic_id = _topic_id_in(fields.tags()) if version >= 4 else None
    return OffsetCommit(*key, offset, leader_epoch, text, time_ms, expire_ms, topic_id)


def _topic_id_in(tags: dict[int, bytes]) -> UUID | None:
    raw = tags.get(0, _NO_TOPIC_ID)
    if len(raw) != 16:
        raise InvalidRecordError(f"a topic id has {len(raw)} bytes")
    return None if raw == _NO_TOPIC_ID else topic_id_of(raw)


def _encode_group(group: GroupMetadata) -> bytes:
    """The value of a classic group's record, versions 0-4; Kafka 4.3 writes version 3.

    v1 the rebalance time-out, v2 the time of the last change, v3 static members, v4 is flexible.
    """
    return b"".join(
        (
            INT16.pack(_WRITTEN_GROUP),
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


def _decode_group(group_id: str, value: bytes) -> GroupMetadata:
    version = FieldReader(value).int16()
    if not 0 <= version <= _NEWEST_GROUP:
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


_KINDS = (
    _Kind(2, GroupMetadata, 1, _encode_group, _decode_group),
    _Kind(3, ConsumerGroupMetadata, 1, consumer_values.encode_epoch, consumer_values.decode_epoch),
    _Kind(5, ConsumerGroupMember, 2, consumer_values.encode_member, consumer_values.decode_member),
    _Kind(
        6,
        TargetAssignmentEpoch,
        1,
        consumer_values.encode_target_epoch,
        consumer_values.decode_target_epoch,
    ),
    _Kind(
        7, TargetAssignmentMember, 2, consumer_values.encode_target, consumer_values.decode_target
    ),
    _Kind(8, CurrentAssignment, 2, consumer_values.encode_current, consumer_values.decode_current),
    _Kind(16, ResolvedRegex, 2, consumer_values.encode_regex, consumer_values.decode_regex),
)
_BY_NUMBER = {kind.number: kind for kind in _KINDS}
_BY_TYPE = {kind.record_type: kind for kind in _KINDS}
