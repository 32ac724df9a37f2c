"""A record of `__consumer_offsets` in the form DumpLogSegments' `--offsets-decoder` prints.

Records of classic and consumer groups are read by the broker's own codec, those of the kinds of
groups it does not keep by `other_groups`. What a version lacks and a tagged field at its default
are left out, as Kafka's tools do.
"""

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from headrace.cli.log.other_groups import OTHER_KINDS, blob_text, uuid_text
from headrace.coordinators.groups.codec import decode
from headrace.coordinators.groups.fields import FieldReader
from headrace.coordinators.groups.records import (
    Assignment,
    ClassicMember,
    ClassicProtocols,
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
from headrace.records.record import Record

_CONSUMER_PROTOCOL_VERSIONS = range(4)
_COMMIT_KEY = ("group", "topic", "partition")
# Kafka's names of what a key is made of, by the number it starts with.
_KEYS = {
    0: _COMMIT_KEY,
    1: _COMMIT_KEY,
    2: ("group",),
    3: ("groupId",),
    5: ("groupId", "memberId"),
    6: ("groupId",),
    7: ("groupId", "memberId"),
    8: ("groupId", "memberId"),
    16: ("groupId", "regularExpression"),
}


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
        if (other := OTHER_KINDS.get(number)) is not None:
            named, shown = other.read_key(key), None if value is None else other.read_value(value)
        elif (found := decode(key, value)) is not None:
            parts = found.key if isinstance(found, Tombstone) else found
            named = dict(zip(_KEYS[number], parts, strict=False))
            shown = None
            if value is not None:
                version = FieldReader(value).int16()
                shown = {"version": str(version), "data": _data_of(found, version)}
        else:
            sentence = f"Unknown record type {number} at offset {record.offset}, skipping."
            return {"key": sentence, "payload": None}
    except InvalidRecordError as error:
        return {"key": f"Error at offset {record.offset}, skipping. {error}", "payload": None}
    return {"key": {"type": str(number), "data": named}, "payload": shown}


def _data_of(record: GroupRecord, version: int) -> dict[str, object]:
    match record:
        case OffsetCommit():
            return {
                "offset": record.offset,
                **({"leaderEpoch": record.leader_epoch} if version >= 3 else {}),
                "metadata": record.metadata,
                "commitTimestamp": record.commit_timestamp_ms,
                **({"expireTimestamp": record.expire_timestamp_ms} if version == 1 else {}),
                **({"topicId": uuid_text(record.topic_id)} if record.topic_id else {}),
            }
        case GroupMetadata():
            is_consumers = record.protocol_type == "consumer"
            return {
                "protocolType": record.protocol_type,
                "generation": record.generation_id,
                "protocol": record.protocol_name,
                "leader": record.leader,
                **({"currentStateTimestamp": record.state_timestamp_ms} if version >= 2 else {}),
                "members": [
                    _classic_member(each, version, is_consumers=is_consumers)
                    for each in record.members
                ],
            }
        case ConsumerGroupMetadata():
            return {"epoch": record.epoch, **_unless_zero("metadataHash", record.metadata_hash)}
        case ConsumerGroupMember():
            classic = {"classicMemberMetadata": _classic_protocols(record.classic)}
            return {
                "instanceId": record.instance_id,
                "rackId": record.rack_id,
                "clientId": record.client_id,
                "clientHost": record.client_host,
                "subscribedTopicNames": list(record.topic_names),
                "subscribedTopicRegex": record.topic_regex,
                "rebalanceTimeoutMs": record.rebalance_timeout_ms,
                "serverAssignor": record.server_assignor,
                **(classic if record.classic != ClassicProtocols(0, ()) else {}),
            }
        case TargetAssignmentEpoch():
            stamped = _unless_zero("assignmentTimestamp", record.timestamp_ms)
            return {"assignmentEpoch": record.epoch, **stamped}
        case TargetAssignmentMember():
            return {"topicPartitions": _topics(record.partitions, None)}
        case CurrentAssignment():
            return {
                "memberEpoch": record.member_epoch,
                "previousMemberEpoch": record.previous_member_epoch,
                "state": record.state,
                "assignedPartitions": _topics(record.assigned, record.assigned_epochs),
                "partitionsPendingRevocation": _topics(
                    record.pending_revocation, record.pending_epochs
                ),
            }
        case ResolvedRegex():
            return {
                "topics": list(record.topics),
                "version": record.version,
                "timestamp": record.timestamp_ms,
            }
        case Tombstone():
            return {}


def _unless_zero(name: str, value: int) -> dict[str, object]:
    return {name: value} if value else {}


def _topics(partitions: Assignment, epochs: Mapping[UUID, Iterable[int]] | None) -> object:
    return [
        {
            "topicId": uuid_text(topic_id),
            "partitions": list(numbers),
            **({"assignmentEpochs": [*given]} if (given := (epochs or {}).get(topic_id)) else {}),
        }
        for topic_id, numbers in partitions.items()
    ]


def _classic_protocols(classic: ClassicProtocols | None) -> object:
    if classic is None:
        return None
    return {
        "sessionTimeoutMs": classic.session_timeout_ms,
        "supportedProtocols": [
            {"name": name, "metadata": blob_text(metadata)} for name, metadata in classic.protocols
        ],
    }


def _classic_member(
    member: ClassicMember, version: int, *, is_consumers: bool
) -> dict[str, object]:
    def opened(data: bytes, read: Callable[[int, FieldReader], object]) -> object:
        """What a consumer put there (ConsumerProtocol); what cannot be read stays base64."""
        try:
            version = FieldReader(data).int16() if is_consumers else -1
            if version in _CONSUMER_PROTOCOL_VERSIONS:
                return read(version, FieldReader(data, 2))
        except InvalidRecordError:
            pass
        return blob_text(data)

    return {
        "memberId": member.member_id,
        **({"groupInstanceId": member.group_instance_id} if version >= 3 else {}),
        "clientId": member.client_id,
        "clientHost": member.client_host,
        **({"rebalanceTimeout": member.rebalance_timeout_ms} if version >= 1 else {}),
        "sessionTimeout": member.session_timeout_ms,
        "subscription": opened(member.subscription, _subscription),
        "assignment": opened(member.assignment, _assignment),
    }


def _subscription(version: int, fields: FieldReader) -> dict[str, object]:
    return {
        "topics": list(fields.array(fields.string)),
        "userData": blob_text(fields.nullable_blob()),
        **({"ownedPartitions": _named_topics(fields)} if version >= 1 else {}),
        **({"generationId": fields.int32()} if version >= 2 else {}),
        **({"rackId": fields.nullable_string()} if version >= 3 else {}),
    }


def _assignment(_version: int, fields: FieldReader) -> dict[str, object]:
    return {
        "assignedPartitions": _named_topics(fields),
        "userData": blob_text(fields.nullable_blob()),
    }


def _named_topics(fields: FieldReader) -> list[object]:
    def read_topic() -> object:
        return {"topic": fields.string(), "partitions": list(fields.array(fields.int32))}

    return list(fields.array(read_topic))
