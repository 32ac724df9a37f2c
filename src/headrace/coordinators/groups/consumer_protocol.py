"""What consumers of the classic protocol tell each other inside JoinGroup and SyncGroup.

The coordinator of a classic group looks into these bytes only to know which topics are read.
Versions 0-3, none flexible. A newer version is read as the newest known one: Kafka promises
that fields are only ever added at the end.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from headrace.protocol.errors import WireError
from headrace.protocol.primitives import (
    INT16,
    INT32,
    read_array_length,
    read_int16,
    read_int32,
    read_span,
    read_string,
    write_array_length,
    write_string,
)

NEWEST_VERSION = 3
_WITH_OWNED_PARTITIONS = 1
_WITH_GENERATION = 2
_WITH_RACK = 3
_NULL_STRING = INT16.pack(-1)
_NULL_BYTES = INT32.pack(-1)

# Partitions by topic name, in the order of the bytes.
TopicPartitions = Mapping[str, tuple[int, ...]]
NO_PARTITIONS: TopicPartitions = MappingProxyType({})


class Subscription(NamedTuple):
    """What a member wants to read, and what it read until now."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: TopicPartitions = NO_PARTITIONS
    generation_id: int = -1
    rack_id: str | None = None
    version: int = NEWEST_VERSION


class MemberAssignment(NamedTuple):
    """What a member shall read."""

    partitions: TopicPartitions
    user_data: bytes | None = None
    version: int = NEWEST_VERSION


def decode_subscription(metadata: bytes) -> Subscription:
    """Read a member's metadata; bytes that are no subscription raise WireError."""
    end = len(metadata)
    version, position = _read_version(metadata)
    topics, position = _read_topics(metadata, position)
    user_data, position = _read_bytes(metadata, position)
    owned: TopicPartitions = NO_PARTITIONS
    generation_id = -1
    rack: bytes | None = None
    if version >= _WITH_OWNED_PARTITIONS:
        owned, position = _read_partitions(metadata, position)
    if version >= _WITH_GENERATION:
        generation_id, position = read_int32(metadata, position, end)
    if version >= _WITH_RACK:
        rack, position = read_string(metadata, position, end, is_compact=False)
    rack_id = None if rack is None else _text(rack)
    return Subscription(tuple(topics), user_data, owned, generation_id, rack_id, version)


def decode_topics(metadata: bytes) -> frozenset[str]:
    """The topics alone, by the layout of version 0, which begins every version.

    So a coordinator knows what is read even where a newer field cannot be made sense of.
    """
    _, position = _read_version(metadata)
    topics, position = _read_topics(metadata, position)
    _read_bytes(metadata, position)
    return frozenset(topics)


def encode_subscription(subscription: Subscription) -> bytes:
    """Write a subscription in its version, leaving out what that version cannot say."""
    version = subscription.version
    parts = [INT16.pack(version)]
    parts.append(write_array_length(len(subscription.topics), is_compact=False))
    parts += [_write_text(topic) for topic in subscription.topics]
    parts.append(_write_bytes(subscription.user_data))
    if version >= _WITH_OWNED_PARTITIONS:
        parts.append(_write_partitions(subscription.owned_partitions))
    if version >= _WITH_GENERATION:
        parts.append(INT32.pack(subscription.generation_id))
    if version >= _WITH_RACK:
        rack_id = subscription.rack_id
        parts.append(_NULL_STRING if rack_id is None else _write_text(rack_id))
    return b"".join(parts)


def decode_assignment(assignment: bytes) -> MemberAssignment:
    """Read what a member was assigned; bytes that are no assignment raise WireError."""
    version, position = _read_version(assignment)
    partitions, position = _read_partitions(assignment, position)
    user_data, position = _read_bytes(assignment, position)
    return MemberAssignment(partitions, user_data, version)


def encode_assignment(assignment: MemberAssignment) -> bytes:
    """Write an assignment; all versions look the same."""
    return (
        INT16.pack(assignment.version)
        + _write_partitions(assignment.partitions)
        + _write_bytes(assignment.user_data)
    )


def _read_version(content: bytes) -> tuple[int, int]:
    version, position = read_int16(content, 0, len(content))
    if version < 0:
        raise WireError(f"consumer protocol version {version} is negative")
    return version, position


def _read_topics(content: bytes, position: int) -> tuple[list[str], int]:
    count, position = read_array_length(content, position, len(content), is_compact=False)
    topics = []
    for _ in range(count):
        topic, position = _read_text(content, position)
        topics.append(topic)
    return topics, position


def _read_partitions(content: bytes, position: int) -> tuple[TopicPartitions, int]:
    end = len(content)
    topic_count, position = read_array_length(content, position, end, is_compact=False)
    partitions: dict[str, tuple[int, ...]] = {}
    for _ in range(topic_count):
        topic, position = _read_text(content, position)
        count, position = read_array_length(content, position, end, is_compact=False)
        numbers = []
        for _ in range(count):
            number, position = read_int32(content, position, end)
            numbers.append(number)
        # Some clients write one entry for each partition: the entries of a topic add up.
        partitions[topic] = partitions.get(topic, ()) + tuple(numbers)
    return partitions, position


def _read_text(content: bytes, position: int) -> tuple[str, int]:
    raw, position = read_string(content, position, len(content), is_compact=False)
    if raw is None:
        raise WireError(f"topic name before byte {position} is null")
    return _text(raw), position


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"string is not UTF-8: {error.reason}") from error


def _read_bytes(content: bytes, position: int) -> tuple[bytes | None, int]:
    start, stop = read_span(content, position, len(content), is_compact=False)
    return (None if start is None else bytes(content[start:stop])), stop


def _write_partitions(partitions: TopicPartitions) -> bytes:
    parts = [write_array_length(len(partitions), is_compact=False)]
    for topic, numbers in partitions.items():
        parts.append(_write_text(topic))
        parts.append(write_array_length(len(numbers), is_compact=False))
        parts += [INT32.pack(number) for number in numbers]
    return b"".join(parts)


def _write_text(text: str) -> bytes:
    return write_string(text.encode(), is_compact=False)


def _write_bytes(content: bytes | None) -> bytes:
    if content is None:
        return _NULL_BYTES
    return INT32.pack(len(content)) + content
