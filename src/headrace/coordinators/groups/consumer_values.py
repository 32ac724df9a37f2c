"""The values of a new group's records (KIP-848): all of version 0, all flexible.

What came after 3.7 is a tagged field, written only when it is not Kafka's default.
"""

from functools import partial
from struct import Struct

from headrace.coordinators.groups.fields import (
    INT32,
    INT64,
    NO_TAGS,
    FieldReader,
    write_compact_array,
    write_compact_bytes,
    write_compact_string,
    write_tag,
)
from headrace.coordinators.groups.records import (
    Assignment,
    ClassicProtocols,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    ResolvedRegex,
    TargetAssignmentEpoch,
    TargetAssignmentMember,
)
from headrace.records.errors import InvalidRecordError

_EPOCHS_AND_STATE = Struct(">hiib")
_VERSION_AND_INT32 = Struct(">hi")
_VERSION_0 = b"\x00\x00"
# A nullable structure starts with whether it is there. Kafka's default for this one is an empty
# structure, so "none" has to be written out.
_NO_CLASSIC_PROTOCOLS = b"\x00"
_CLASSIC_PROTOCOLS = b"\x01"


def encode_epoch(record: ConsumerGroupMetadata) -> bytes:
    tags = write_tag(0, INT64.pack(record.metadata_hash)) if record.metadata_hash else NO_TAGS
    return _VERSION_AND_INT32.pack(0, record.epoch) + tags


def decode_epoch(group_id: str, value: bytes) -> ConsumerGroupMetadata:
    fields = _open(value, "a consumer group's metadata")
    epoch = fields.int32()
    return ConsumerGroupMetadata(group_id, epoch, _int64_in(fields.tags()))


def encode_target_epoch(record: TargetAssignmentEpoch) -> bytes:
    tags = write_tag(0, INT64.pack(record.timestamp_ms)) if record.timestamp_ms else NO_TAGS
    return _VERSION_AND_INT32.pack(0, record.epoch) + tags


def decode_target_epoch(group_id: str, value: bytes) -> TargetAssignmentEpoch:
    fields = _open(value, "a target assignment's metadata")
    epoch = fields.int32()
    return TargetAssignmentEpoch(group_id, epoch, _int64_in(fields.tags()))


def encode_member(record: ConsumerGroupMember) -> bytes:
    return b"".join(
        (
            _VERSION_0,
            write_compact_string(record.instance_id),
            write_compact_string(record.rack_id),
            write_compact_string(record.client_id),
            write_compact_string(record.client_host),
            write_compact_array(map(write_compact_string, record.topic_names)),
            write_compact_string(record.topic_regex),
            INT32.pack(record.rebalance_timeout_ms),
            write_compact_string(record.server_assignor),
            write_tag(0, _encode_classic(record.classic)),
        )
    )


def _encode_classic(classic: ClassicProtocols | None) -> bytes:
    if classic is None:
        return _NO_CLASSIC_PROTOCOLS
    protocols = (
        write_compact_string(name) + write_compact_bytes(metadata) + NO_TAGS
        for name, metadata in classic.protocols
    )
    timeout = INT32.pack(classic.session_timeout_ms)
    return _CLASSIC_PROTOCOLS + timeout + write_compact_array(protocols) + NO_TAGS


def decode_member(group_id: str, member_id: str, value: bytes) -> ConsumerGroupMember:
    fields = _open(value, "a member's metadata")
    return ConsumerGroupMember(
        group_id,
        member_id,
        instance_id=fields.nullable_string(),
        rack_id=fields.nullable_string(),
        client_id=fields.string(),
        client_host=fields.string(),
        topic_names=fields.array(fields.string),
        topic_regex=fields.nullable_string(),
        rebalance_timeout_ms=fields.int32(),
        server_assignor=fields.nullable_string(),
        classic=_decode_classic(fields.tags().get(0, _NO_CLASSIC_PROTOCOLS)),
    )


def _decode_classic(raw: bytes) -> ClassicProtocols | None:
    if raw[:1] == _NO_CLASSIC_PROTOCOLS:
        return None
    fields = FieldReader(raw, 1, is_compact=True)
    classic = ClassicProtocols(fields.int32(), fields.array(partial(_decode_protocol, fields)))
    fields.tags()
    return classic


def _decode_protocol(fields: FieldReader) -> tuple[str, bytes]:
    protocol = fields.string(), fields.blob()
    fields.tags()
    return protocol


def encode_target(record: TargetAssignmentMember) -> bytes:
    return _VERSION_0 + _encode_partitions(record.partitions, None) + NO_TAGS


def decode_target(group_id: str, member_id: str, value: bytes) -> TargetAssignmentMember:
    fields = _open(value, "a target assignment")
    partitions, _ = _decode_partitions(fields)
    fields.tags()
    return TargetAssignmentMember(group_id, member_id, partitions)


def encode_current(record: CurrentAssignment) -> bytes:
    head = _EPOCHS_AND_STATE.pack(
        0, record.member_epoch, record.previous_member_epoch, record.state
    )
    assigned = _encode_partitions(record.assigned, record.assigned_epochs)
    pending = _encode_partitions(record.pending_revocation, record.pending_epochs)
    return head + assigned + pending + NO_TAGS


def decode_current(group_id: str, member_id: str, value: bytes) -> CurrentAssignment:
    fields = _open(value, "a current assignment")
    member_epoch, previous_member_epoch = fields.int32(), fields.int32()
    state = fields.int8()
    assigned, assigned_epochs = _decode_partitions(fields)
    pending, pending_epochs = _decode_partitions(fields)
    fields.tags()
    return CurrentAssignment(
        group_id,
        member_id,
        member_epoch,
        previous_member_epoch,
        state,
        assigned,
        pending,
        assigned_epochs,
        pending_epochs,
    )


def encode_regex(record: ResolvedRegex) -> bytes:
    topics = write_compact_array(map(write_compact_string, record.topics))
    times = INT64.pack(record.version) + INT64.pack(record.timestamp_ms)
    return _VERSION_0 + topics + times + NO_TAGS


def decode_regex(group_id: str, regex: str, value: bytes) -> ResolvedRegex:
    fields = _open(value, "a regular expression")
    topics = fields.array(fields.string)
    version, timestamp_ms = fields.int64(), fields.int64()
    fields.tags()
    return ResolvedRegex(group_id, regex, topics, version, timestamp_ms)


def _open(value: bytes, kind: str) -> FieldReader:
    version = FieldReader(value).int16()
    if version != 0:
        raise InvalidRecordError(f"version {version} of {kind} is unknown")
    return FieldReader(value, 2, is_compact=True)


def _int64_in(tags: dict[int, bytes]) -> int:
    return FieldReader(tags[0]).int64() if 0 in tags else 0


def _encode_partitions(partitions: Assignment, epochs: Assignment | None) -> bytes:
    return write_compact_array(
        topic_id.bytes + _encode_numbers(numbers) + _encode_epochs((epochs or {}).get(topic_id))
        for topic_id, numbers in partitions.items()
    )


def _encode_numbers(numbers: tuple[int, ...]) -> bytes:
    return write_compact_array(map(INT32.pack, numbers))


def _encode_epochs(epochs: tuple[int, ...] | None) -> bytes:
    return NO_TAGS if epochs is None else write_tag(0, _encode_numbers(epochs))


def _decode_partitions(fields: FieldReader) -> tuple[Assignment, Assignment | None]:
    """The partitions by topic, and the epochs of those topics that have them; None: of none."""
    partitions: Assignment = {}
    epochs: Assignment = {}

    def read_topic() -> None:
        topic_id = fields.uuid()
        partitions[topic_id] = fields.array(fields.int32)
        tags = fields.tags()
        if tags.get(0, b"\x00") != b"\x00":  # as a null array, it says nothing
            of_topic = FieldReader(tags[0], is_compact=True)
            epochs[topic_id] = of_topic.array(of_topic.int32)

    fields.array(read_topic)
    return partitions, epochs or None
