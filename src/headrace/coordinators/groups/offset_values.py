"""The value of an offset commit, versions 0-4: the one that has to be quick.

v1 alone has an expiry of its own, so Kafka 4.3 still writes it for commits that name one, and
v4 (flexible, tag 0 is the topic's id) for all others.
"""

from struct import Struct, error
from uuid import UUID

from headrace.coordinators.groups.fields import (
    INT16,
    INT64,
    FieldReader,
    topic_id_of,
    write_compact_bytes,
    write_string,
)
from headrace.coordinators.groups.records import OffsetCommit
from headrace.records.errors import InvalidRecordError

_NEWEST = 4
_HEAD = Struct(">hqi")  # version, offset, leader epoch
_HEAD_AND_LENGTH = Struct(">hqiB")
_OLD_HEAD = Struct(">hq")
_EXPIRY = Struct(">qq")
_TIME_AND_NO_TAGS = Struct(">qB")
_TIME_AND_TOPIC_ID = Struct(">q3s16s")
_TOPIC_ID_TAG = b"\x01\x00\x10"  # one tagged field, its number, its size
_SHORTEST = 24  # no metadata and no tagged field
_NO_TOPIC_ID = bytes(16)
_new_tuple = tuple.__new__

CommitKey = tuple[str, str, int]


def encode_commit(commit: OffsetCommit) -> bytes:
    """The value in the version that Kafka 4.3 would take."""
    offset, leader_epoch, text, time_ms, expire_ms, topic_id = commit[3:]
    if expire_ms != -1:
        head = _OLD_HEAD.pack(1, offset)
        return head + write_string(text) + _EXPIRY.pack(time_ms, expire_ms)
    raw = text.encode()
    head = _HEAD.pack(_NEWEST, offset, leader_epoch)
    if topic_id is None:
        return head + write_compact_bytes(raw) + _TIME_AND_NO_TAGS.pack(time_ms, 0)
    tail = _TIME_AND_TOPIC_ID.pack(time_ms, _TOPIC_ID_TAG, topic_id.bytes)
    return head + write_compact_bytes(raw) + tail


def decode_commit(key: CommitKey, value: bytes) -> OffsetCommit:
    """The commit of `key` that `value` holds, whichever version it has."""
    # The newest version with short metadata is nearly every record there is.
    if value[:2] != b"\x00\x04" or len(value) < _SHORTEST:
        return _decode_slowly(key, value)
    _, offset, leader_epoch, length = _HEAD_AND_LENGTH.unpack_from(value)
    end = 14 + length  # the compact length counts one more than there is
    tags_at = end + 8
    if not 0 < length < 0x80 or tags_at >= len(value):
        return _decode_slowly(key, value)
    topic_id: UUID | None = None
    if value[tags_at]:
        if value[tags_at : tags_at + 3] != _TOPIC_ID_TAG or len(value) != tags_at + 19:
            return _decode_slowly(key, value)
        topic_id = topic_id_of(value[tags_at + 3 :])
    try:
        text = value[15:end].decode() if length > 1 else ""
    except UnicodeDecodeError:
        raise InvalidRecordError("the metadata of a commit is not UTF-8") from None
    (time_ms,) = INT64.unpack_from(value, end)
    # Past OffsetCommit's own constructor: a load runs this for every commit there is.
    fields = (*key, offset, leader_epoch, text, time_ms, -1, topic_id)
    return _new_tuple(OffsetCommit, fields)


def _decode_slowly(key: CommitKey, value: bytes) -> OffsetCommit:
    try:
        (version,) = INT16.unpack_from(value)
    except error:
        raise InvalidRecordError("an offset commit has no version") from None
    if not 0 <= version <= _NEWEST:
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
