"""The answer to a fetch: what was found, written around stretches of files."""

from collections.abc import Generator
from typing import NamedTuple

from headrace.broker.answers import Piece
from headrace.broker.fetch_sessions import Watched
from headrace.log.partition_log import FileSlice, PartitionLog
from headrace.protocol.fetch import FetchLayout, PartitionHead
from headrace.protocol.headers import RequestHeader

# Partitions that are written between two steps: a third of a millisecond.
STEP_PARTITIONS = 256


class FetchedPartition(NamedTuple):
    """What one partition has to give."""

    watched: Watched
    head: PartitionHead
    slices: list[FileSlice]
    byte_count: int

    @property
    def is_news(self) -> bool:
        """Whether its session has not been told this."""
        head, watched = self.head, self.watched
        return (
            self.byte_count > 0
            or head.error_code != 0
            or head.high_watermark != watched.high_watermark
            or head.log_start_offset != watched.log_start_offset
        )


class FetchedPartitions:
    """What the partitions of a request have to give, as far as they were looked at."""

    __slots__ = ("byte_count", "has_error", "logs", "partitions")

    def __init__(self) -> None:
        self.partitions: list[FetchedPartition] = []
        self.logs: dict[PartitionLog, FetchedPartition] = {}
        self.byte_count = 0
        self.has_error = False

    def add(self, one: FetchedPartition) -> None:
        """One more partition."""
        self.partitions.append(one)
        self.byte_count += one.byte_count


def encode(
    header: RequestHeader,
    error_code: int,
    session_id: int,
    found: list[FetchedPartition],
    *,
    is_committed: bool = False,
) -> Generator[None, None, list[Piece]]:
    """The pieces of a whole response frame, in steps if the partitions are many."""
    layout = FetchLayout.of(header.api_version)
    topics: list[tuple[bytes, list[FetchedPartition]]] = []
    for one in found:
        if topics and topics[-1][0] == one.watched.topic:
            topics[-1][1].append(one)
        else:
            topics.append((one.watched.topic, [one]))
    pieces: list[Piece] = []
    text = bytearray(layout.head(error_code, session_id, len(topics)))
    size = 0
    left = STEP_PARTITIONS
    for topic, partitions in topics:
        text += layout.topic_head(topic, len(partitions))
        for one in partitions:
            text += layout.partition_head(one.head, one.byte_count, is_committed=is_committed)
            if one.byte_count:
                size += len(text) + one.byte_count
                pieces.append(bytes(text))
                pieces.extend(one.slices)
                text = bytearray()
            text += layout.partition_tail
            left -= 1
            if not left:
                left = STEP_PARTITIONS
                yield
        text += layout.topic_tail
    text += layout.tail
    size += len(text)
    pieces.append(bytes(text))
    frame_head = layout.frame_head(header.correlation_id, size)
    first = pieces[0]
    pieces[0] = frame_head + first if isinstance(first, bytes) else frame_head
    return pieces
