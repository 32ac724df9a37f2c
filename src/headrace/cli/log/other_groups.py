"""Records of `__consumer_offsets` of groups the broker does not keep: share and streams groups.

The schemas of Kafka 4.3.1, for printing any record as JSON. All have version 0 alone and are
compact; a tagged field at its default is not printed.
"""

import base64
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from headrace.coordinators.groups.fields import FieldReader
from headrace.records.errors import InvalidRecordError

Json = object
Read = Callable[[FieldReader], Json]


class _Tag(NamedTuple):
    """A tagged field; it is not printed at its default."""

    name: str
    read: Read
    default: Json


class _Struct(NamedTuple):
    """Fields in their order, then tagged ones."""

    fields: tuple[tuple[str, Read], ...]
    tags: Mapping[int, _Tag] = {}

    def read(self, fields: FieldReader) -> dict[str, Json]:
        found = {name: read(fields) for name, read in self.fields}
        for number, raw in fields.tags().items():
            if (tag := self.tags.get(number)) is not None:
                value = tag.read(FieldReader(raw, is_compact=True))
                if value != tag.default:
                    found[tag.name] = value
        return found


class OtherKind(NamedTuple):
    """What follows the number that a key starts with, and the value."""

    key_names: tuple[str, ...]
    value: _Struct

    def read_key(self, key: bytes) -> dict[str, Json]:
        fields = FieldReader(key, 2)
        return {name: fields.nullable_string() for name in self.key_names}

    def read_value(self, value: bytes) -> dict[str, Json]:
        version = FieldReader(value).int16()
        if version != 0:
            raise InvalidRecordError(f"version {version} is unknown")
        data = self.value.read(FieldReader(value, 2, is_compact=True))
        return {"version": str(version), "data": data}


def uuid_text(topic_id: UUID) -> str:
    """An id as Kafka's tools write it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def blob_text(data: bytes | None) -> str | None:
    """Bytes in base64."""
    return None if data is None else base64.b64encode(data).decode()


def _uint16(fields: FieldReader) -> Json:
    return fields.int16() & 0xFFFF


def _uuid(fields: FieldReader) -> Json:
    return uuid_text(fields.uuid())


def _list_of(read: Read) -> Read:
    return lambda fields: list(fields.array(lambda: read(fields)))


def _struct(*members: tuple[str, Read], tags: Mapping[int, _Tag] | None = None) -> Read:
    return _Struct(members, tags or {}).read


def _nullable(read: Read) -> Read:
    """A structure behind a byte that says whether it is there."""
    return lambda fields: read(fields) if fields.int8() > 0 else None


_int8, _int16, _int32 = FieldReader.int8, FieldReader.int16, FieldReader.int32
_int64, _text = FieldReader.int64, FieldReader.nullable_string

_EPOCHS = {0: _Tag("assignmentEpochs", _list_of(_int32), [])}
_TIMESTAMP = {0: _Tag("assignmentTimestamp", _int64, 0)}
_NAMED = _struct(("key", _text), ("value", _text))
_TOPIC = _struct(("topicId", _uuid), ("partitions", _list_of(_int32)))
_NAMED_TOPIC = _struct(("topicId", _uuid), ("topicName", _text), ("partitions", _list_of(_int32)))
_TASKS = _list_of(_struct(("subtopologyId", _text), ("partitions", _list_of(_int32))))
_TASKS_WITH_EPOCHS = _list_of(
    _struct(("subtopologyId", _text), ("partitions", _list_of(_int32)), tags=_EPOCHS)
)
_INTERNAL_TOPIC = _struct(
    ("name", _text),
    ("partitions", _int32),
    ("replicationFactor", _int16),
    ("topicConfigs", _list_of(_NAMED)),
)

_GROUP_KEY = ("groupId",)
_MEMBER_KEY = ("groupId", "memberId")
_MEMBER_STATE = (("memberEpoch", _int32), ("previousMemberEpoch", _int32), ("state", _int8))
_TASK_LISTS = ("activeTasks", "standbyTasks", "warmupTasks")
_SUBTOPOLOGY = _struct(
    ("subtopologyId", _text),
    ("sourceTopics", _list_of(_text)),
    ("sourceTopicRegex", _list_of(_text)),
    ("stateChangelogTopics", _list_of(_INTERNAL_TOPIC)),
    ("repartitionSinkTopics", _list_of(_text)),
    ("repartitionSourceTopics", _list_of(_INTERNAL_TOPIC)),
    (
        "copartitionGroups",
        _list_of(
            _struct(
                ("sourceTopics", _list_of(_int16)),
                ("sourceTopicRegex", _list_of(_int16)),
                ("repartitionSourceTopics", _list_of(_int16)),
            )
        ),
    ),
)
_RACKS = _struct(("partition", _int32), ("racks", _list_of(_text)))
_TOPIC_METADATA = _struct(
    ("topicId", _uuid),
    ("topicName", _text),
    ("numPartitions", _int32),
    ("partitionMetadata", _list_of(_RACKS)),
)
_CLIENT = (("rackId", _text), ("clientId", _text), ("clientHost", _text))


def _kind(
    key_names: tuple[str, ...],
    *members: tuple[str, Read],
    tags: Mapping[int, _Tag] | None = None,
) -> OtherKind:
    return OtherKind(key_names, _Struct(members, tags or {}))


_TARGET_EPOCH = _kind(_GROUP_KEY, ("assignmentEpoch", _int32), tags=_TIMESTAMP)

# By the number that a key starts with.
OTHER_KINDS: dict[int, OtherKind] = {
    4: _kind(_GROUP_KEY, ("topics", _list_of(_TOPIC_METADATA))),
    10: _kind(_MEMBER_KEY, *_CLIENT, ("subscribedTopicNames", _list_of(_text))),
    11: _kind(_GROUP_KEY, ("epoch", _int32), ("metadataHash", _int64)),
    12: _TARGET_EPOCH,
    13: _kind(_MEMBER_KEY, ("topicPartitions", _list_of(_TOPIC))),
    14: _kind(_MEMBER_KEY, *_MEMBER_STATE, ("assignedPartitions", _list_of(_TOPIC))),
    15: _kind(
        _GROUP_KEY,
        ("initializingTopics", _list_of(_NAMED_TOPIC)),
        ("initializedTopics", _list_of(_NAMED_TOPIC)),
        ("deletingTopics", _list_of(_struct(("topicId", _uuid), ("topicName", _text)))),
    ),
    17: _kind(
        _GROUP_KEY,
        ("epoch", _int32),
        ("metadataHash", _int64),
        tags={
            0: _Tag("validatedTopologyEpoch", _int32, -1),
            1: _Tag("lastAssignmentConfigs", _list_of(_NAMED), []),
        },
    ),
    19: _kind(
        _MEMBER_KEY,
        ("instanceId", _text),
        *_CLIENT,
        ("rebalanceTimeoutMs", _int32),
        ("topologyEpoch", _int32),
        ("processId", _text),
        ("userEndpoint", _nullable(_struct(("host", _text), ("port", _uint16)))),
        ("clientTags", _list_of(_NAMED)),
    ),
    20: _TARGET_EPOCH,
    21: _kind(_MEMBER_KEY, *((name, _TASKS) for name in _TASK_LISTS)),
    22: _kind(
        _MEMBER_KEY,
        *_MEMBER_STATE,
        *((name, _TASKS_WITH_EPOCHS) for name in _TASK_LISTS),
        *((f"{name}PendingRevocation", _TASKS_WITH_EPOCHS) for name in _TASK_LISTS),
    ),
    23: _kind(_GROUP_KEY, ("epoch", _int32), ("subtopologies", _list_of(_SUBTOPOLOGY))),
}
