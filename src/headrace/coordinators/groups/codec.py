"""Records of `__consumer_offsets` as bytes, in the schemas of Kafka 4.3.1.

A key starts with a number that says what kind of record it is, a value with its version. All
versions that Kafka 4.3.1 reads are read, and the one it writes is written, so the bytes of a
record that it wrote come out of `encode(decode(…))` unchanged.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.coordinators.groups import classic_values, consumer_values
from headrace.coordinators.groups.fields import INT16, INT32, FieldReader, write_string
from headrace.coordinators.groups.offset_values import CommitKey, decode_commit, encode_commit
from headrace.coordinators.groups.records import (
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


class _Kind(NamedTuple):
    """How one kind of record is written: `key_size` strings are its key."""

    number: int
    record_type: type
    key_size: int
    encode_value: Callable[[Any], bytes]
    decode_value: Callable[..., GroupRecord]


_KINDS = (
    _Kind(2, GroupMetadata, 1, classic_values.encode_group, classic_values.decode_group),
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


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value of a record to append; a tombstone's value is None."""
    if isinstance(record, OffsetCommit):
        return _encode_commit_key(record[0], record[1], record[2]), encode_commit(record)
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
        return decode_commit(commit_key, value)
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
def _decode_commit_key(key: bytes) -> CommitKey:
    fields = FieldReader(key, 2)
    return fields.string(), fields.string(), fields.int32()
