"""Fetch (1), v4-18, by hand: the answer is written around file bytes that are never copied here.

v5   log_start_offset                 v7   sessions (KIP-227)
v9   current_leader_epoch             v11  rack_id, preferred_read_replica
v12  flexible, last_fetched_epoch     v13  topics by id (KIP-516)
v15  replica id moves to a tag        v17, v18  tags for replicas only
"""

from collections.abc import Generator
from struct import Struct
from typing import ClassVar, NamedTuple

from headrace.protocol.errors import TooManyElementsError, WireError
from headrace.protocol.headers import RESPONSE_START
from headrace.protocol.primitives import (
    INT32,
    Buffer,
    read_array_length,
    read_int32,
    read_string,
    skip_tags,
    write_array_length,
    write_string,
    write_uvarint,
)
from headrace.protocol.versions import FETCH, FIRST_FLEXIBLE

FLEXIBLE_FROM = FIRST_FLEXIBLE[FETCH]
TOPIC_IDS_FROM = 13
SESSIONS_FROM = 7
# Topics and partitions that are read between two steps of `read_steps`: a quarter of a millisecond.
STEP_ELEMENTS = 256
_ID_SIZE = 16
_new_tuple = tuple.__new__

# max wait, min bytes, max bytes, isolation level
_LIMITS = Struct(">iiib")
_SESSION = Struct(">ii")
# partition, [leader epoch], fetch offset, [last fetched epoch], [log start], max bytes
_PARTITION = {
    4: Struct(">iqi"), 5: Struct(">iqqi"), 9: Struct(">iiqqi"), 12: Struct(">iiqiqi"),
}  # fmt: skip
_PARTITION_OF_VERSION = [
    _PARTITION[max((start for start in _PARTITION if start <= version), default=4)]
    for version in range(19)
]


class FetchPartition(NamedTuple):
    """One partition asked for. A leader epoch of -1 means "do not check"."""

    partition: int
    leader_epoch: int
    offset: int
    max_bytes: int


class FetchRequest(NamedTuple):
    """A parsed request. A topic is its raw name, or its 16-byte id from v13 on."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[bytes, list[FetchPartition]]]
    forgotten: list[tuple[bytes, list[int]]]


class PartitionHead(NamedTuple):
    """All of a partition's answer but its records."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


def read_request(buffer: Buffer, position: int, end: int, version: int) -> FetchRequest:
    """Read the body of a request in one go."""
    steps = read_steps(buffer, position, end, version, end - position)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            request: FetchRequest = done.value
            return request


def read_steps(
    buffer: Buffer, position: int, end: int, version: int, max_elements: int
) -> Generator[None, None, FetchRequest]:
    """Read the body of a request in steps; a short one takes none.

    TooManyElementsError as soon as its counts add up to more than `max_elements`
    topics and partitions: nothing of the array that goes too far is read.
    """
    is_flexible = version >= FLEXIBLE_FROM
    head, position = _read_head(buffer, position, end, version)
    left = STEP_ELEMENTS
    topics = []
    announced, position = read_array_length(buffer, position, end, is_compact=is_flexible)
    if announced > max_elements:
        raise TooManyElementsError(announced, max_elements)
    for _ in range(announced):
        topic, position = _read_topic(buffer, position, end, version)
        count, position = read_array_length(buffer, position, end, is_compact=is_flexible)
        announced += count
        if announced > max_elements:
            raise TooManyElementsError(announced, max_elements)
        partitions: list[FetchPartition] = []
        if left <= 0:
            left = STEP_ELEMENTS
            yield
        left -= 1
        while count > left:
            position = _read_partitions(buffer, position, end, version, left, partitions)
            count -= left
            left = STEP_ELEMENTS
            yield
        position = _read_partitions(buffer, position, end, version, count, partitions)
        left -= count
        if is_flexible:
            position = skip_tags(buffer, position, end)
        topics.append((topic, partitions))
    forgotten: list[tuple[bytes, list[int]]] = []
    if version >= SESSIONS_FROM:
        topic_count, position = read_array_length(buffer, position, end, is_compact=is_flexible)
        if topic_count:
            allowed = max_elements - announced
            forgotten, position = yield from _forgotten_steps(
                buffer, position, end, version, topic_count, allowed
            )
    if version >= 11:
        _, position = read_string(buffer, position, end, is_compact=is_flexible)  # rack
    if is_flexible:
        skip_tags(buffer, position, end)
    return FetchRequest(*head, topics, forgotten)


def _read_head(
    buffer: Buffer, position: int, end: int, version: int
) -> tuple[tuple[int, int, int, int, int, int], int]:
    """Everything before the topics: limits, isolation level, session id and epoch."""
    if version < 15:
        _, position = read_int32(buffer, position, end)  # replica id
    if position + _LIMITS.size > end:
        raise WireError("Fetch request ends inside its limits")
    limits = _LIMITS.unpack_from(buffer, position)
    position += _LIMITS.size
    if version < SESSIONS_FROM:
        return (*limits, 0, -1), position
    if position + _SESSION.size > end:
        raise WireError("Fetch request ends inside its session")
    return (*limits, *_SESSION.unpack_from(buffer, position)), position + _SESSION.size


def _read_partitions(
    buffer: Buffer,
    position: int,
    end: int,
    version: int,
    count: int,
    partitions: list[FetchPartition],
) -> int:
    layout = _PARTITION_OF_VERSION[version]
    size = layout.size
    for _ in range(count):
        if position + size > end:
            raise WireError("Fetch request ends inside a partition")
        values = layout.unpack_from(buffer, position)
        position += size
        if version >= 9:
            asked = (values[0], values[1], values[2], values[-1])
        else:
            asked = (values[0], -1, values[1], values[-1])
        # Past FetchPartition's own constructor: a request may name thousands.
        partitions.append(_new_tuple(FetchPartition, asked))
        if version >= FLEXIBLE_FROM:
            position = skip_tags(buffer, position, end)
    return position


def _forgotten_steps(
    buffer: Buffer, position: int, end: int, version: int, announced: int, allowed: int
) -> Generator[None, None, tuple[list[tuple[bytes, list[int]]], int]]:
    is_flexible = version >= FLEXIBLE_FROM
    if announced > allowed:
        raise TooManyElementsError(announced, allowed)
    forgotten = []
    left = STEP_ELEMENTS
    for _ in range(announced):
        topic, position = _read_topic(buffer, position, end, version)
        count, position = read_array_length(buffer, position, end, is_compact=is_flexible)
        announced += count
        if announced > allowed:
            raise TooManyElementsError(announced, allowed)
        indexes = []
        for _ in range(count):
            index, position = read_int32(buffer, position, end)
            indexes.append(index)
            left -= 1
            if left <= 0:
                left = STEP_ELEMENTS
                yield
        if is_flexible:
            position = skip_tags(buffer, position, end)
        forgotten.append((topic, indexes))
        left -= 1
        if left <= 0:
            left = STEP_ELEMENTS
            yield
    return forgotten, position


def _read_topic(buffer: Buffer, position: int, end: int, version: int) -> tuple[bytes, int]:
    if version >= TOPIC_IDS_FROM:
        if position + _ID_SIZE > end:
            raise WireError("Fetch request ends inside a topic id")
        return bytes(buffer[position : position + _ID_SIZE]), position + _ID_SIZE
    topic, position = read_string(buffer, position, end, is_compact=version >= FLEXIBLE_FROM)
    if topic is None:
        raise WireError("Fetch request with a null topic name")
    return topic, position


# partition, error code, high watermark, last stable offset[, log start offset]
_HEAD_V4 = Struct(">ihqq")
_HEAD_V5 = Struct(">ihqqq")
_NULL_ABORTED_V4 = b"\xff\xff\xff\xff"
_EMPTY_ABORTED_V4 = b"\0\0\0\0"
_NO_REPLICA = b"\xff\xff\xff\xff"


class FetchLayout:
    """How one version writes its answer; `of` returns the shared instance for a version.

    An answer is a list of pieces; where a partition has records, the caller
    puts its own pieces between `partition_head` and `partition_tail`.
    """

    __slots__ = ("_is_flexible", "_version", "partition_tail", "tail", "topic_tail")
    _instances: ClassVar[dict[int, "FetchLayout"]] = {}

    def __init__(self, version: int) -> None:
        self._version = version
        self._is_flexible = is_flexible = version >= FLEXIBLE_FROM
        self.partition_tail = self.topic_tail = self.tail = b"\0" if is_flexible else b""

    @classmethod
    def of(cls, version: int) -> "FetchLayout":
        """Return the layout of `version`."""
        layout = cls._instances.get(version)
        if layout is None:
            layout = cls._instances[version] = cls(version)
        return layout

    def head(self, error_code: int, session_id: int, topic_count: int) -> bytes:
        """Everything of the body before the first topic."""
        out = b"\0\0\0\0"  # throttle time
        if self._version >= SESSIONS_FROM:
            out += error_code.to_bytes(2, "big", signed=True) + INT32.pack(session_id)
        return out + write_array_length(topic_count, is_compact=self._is_flexible)

    def topic_head(self, topic: bytes, partition_count: int) -> bytes:
        """Topic name or id and the number of its partitions."""
        if self._version < TOPIC_IDS_FROM:
            topic = write_string(topic, is_compact=self._is_flexible)
        return topic + write_array_length(partition_count, is_compact=self._is_flexible)

    def partition_head(
        self, head: PartitionHead, records_bytes: int, *, is_committed: bool = False
    ) -> bytes:
        """Everything of a partition before its records, including their length.

        No transaction was aborted in what follows: null for those who read everything, an
        empty list for those who read what is committed.
        """
        out = _HEAD_V5.pack(*head) if self._version >= 5 else _HEAD_V4.pack(*head[:4])
        if is_committed:
            out += b"\1" if self._is_flexible else _EMPTY_ABORTED_V4
        else:
            out += b"\0" if self._is_flexible else _NULL_ABORTED_V4
        if self._version >= 11:
            out += _NO_REPLICA
        if self._is_flexible:
            return out + write_uvarint(records_bytes + 1)
        return out + INT32.pack(records_bytes)

    def frame_head(self, correlation_id: int, body_size: int) -> bytes:
        """Frame size and response header."""
        if self._is_flexible:
            return RESPONSE_START.pack(body_size + 5, correlation_id) + b"\0"
        return RESPONSE_START.pack(body_size + 4, correlation_id)
