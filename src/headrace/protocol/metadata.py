"""The topics of a Metadata answer, written by hand: a cluster may have ten thousand of them.

All topics of one size look the same behind their name and id, so that part is written once. The
fields before and behind the topics go through kio like any cold message.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from uuid import UUID

from headrace.model import Topic
from headrace.protocol.codec import Encoded
from headrace.protocol.primitives import write_array_length, write_uvarint
from headrace.protocol.versions import FIRST_FLEXIBLE, METADATA

_INTERNAL_SINCE = 1
_OFFLINE_SINCE = 5
_EPOCH_SINCE = 7
_OPERATIONS_SINCE = 8
_FLEXIBLE_SINCE = FIRST_FLEXIBLE[METADATA]
_IDS_SINCE = 10
_CLUSTER_OPERATIONS_UNTIL = 10
_ERROR_SINCE = 13

_NO_ERROR = b"\0\0"
_NO_ID = bytes(16)
_NO_TAGS = b"\0"
_INT16, _INT32, _HEAD = Struct(">h"), Struct(">i"), Struct(">hii")

_OPERATIONS_UNKNOWN = -(2**31)


class MetadataWriter:
    """Writes topics as one version of Metadata has them, led by the one broker there is."""

    def __init__(self, version: int, node_id: int, operations: int) -> None:
        self._version, self._node_id, self._operations = version, node_id, operations
        self._is_flexible = version >= _FLEXIBLE_SINCE

    def topic(self, topic: Topic) -> bytes:
        """A topic and all its partitions."""
        return self._topic(
            _NO_ERROR,
            topic.name,
            topic.topic_id,
            topic.is_internal,
            _behind_the_name(
                self._version,
                self._node_id,
                topic.partition_count,
                topic.leader_epoch,
                self._operations,
            ),
        )

    def refusal(
        self, error_code: int, name: str | None, topic_id: UUID | None, *, is_internal: bool
    ) -> bytes:
        """A topic of which there is nothing to say but why."""
        # Of a topic that is asked for by id and is not there, nobody says what may be done.
        operations = self._operations if topic_id is None else _OPERATIONS_UNKNOWN
        rest = _behind_the_name(self._version, self._node_id, 0, 0, operations)
        return self._topic(_INT16.pack(error_code), name, topic_id, is_internal, rest)

    def _topic(
        self, error: bytes, name: str | None, topic_id: UUID | None, is_internal: bool, rest: bytes
    ) -> bytes:
        raw_name = b"" if name is None else name.encode()
        if not self._is_flexible:
            start = error + _INT16.pack(len(raw_name)) + raw_name
        else:
            start = error + (b"\0" if name is None else write_uvarint(len(raw_name) + 1)) + raw_name
            if self._version >= _IDS_SINCE:
                start += _NO_ID if topic_id is None else topic_id.bytes
        if self._version >= _INTERNAL_SINCE:
            start += b"\1" if is_internal else b"\0"
        return start + rest

    def fill(self, without_topics: bytes, topics: Sequence[bytes]) -> Encoded:
        """Put topics into an answer that has none."""
        behind = 0
        if _OPERATIONS_SINCE <= self._version <= _CLUSTER_OPERATIONS_UNTIL:
            behind += _INT32.size
        if self._version >= _ERROR_SINCE:
            behind += _INT16.size
        if self._is_flexible:
            behind += len(_NO_TAGS)
        end = len(without_topics) - behind
        start = end - len(write_array_length(0, is_compact=self._is_flexible))
        count = write_array_length(len(topics), is_compact=self._is_flexible)
        return Encoded(b"".join((without_topics[:start], count, *topics, without_topics[end:])))


def _behind_the_name(
    version: int, node_id: int, partition_count: int, leader_epoch: int, operations: int
) -> bytes:
    write = _write_few if partition_count <= _FEW_PARTITIONS else _write_partitions
    return write(version, node_id, partition_count, leader_epoch, operations)


def _write_partitions(
    version: int, node_id: int, partition_count: int, leader_epoch: int, operations: int
) -> bytes:
    is_flexible = version >= _FLEXIBLE_SINCE
    one = write_array_length(1, is_compact=is_flexible) + _INT32.pack(node_id)
    rest = (_INT32.pack(leader_epoch) if version >= _EPOCH_SINCE else b"") + one + one
    if version >= _OFFLINE_SINCE:
        rest += write_array_length(0, is_compact=is_flexible)
    if is_flexible:
        rest += _NO_TAGS
    pieces = [write_array_length(partition_count, is_compact=is_flexible)]
    for partition in range(partition_count):
        pieces.append(_HEAD.pack(0, partition, node_id))
        pieces.append(rest)
    if version >= _OPERATIONS_SINCE:
        pieces.append(_INT32.pack(operations))
    if is_flexible:
        pieces.append(_NO_TAGS)
    return b"".join(pieces)


# Most topics have one of a few shapes. A thousand of them, at 4 KB each, are 4 MB.
_FEW_PARTITIONS = 128
_write_few = lru_cache(maxsize=1024)(_write_partitions)
