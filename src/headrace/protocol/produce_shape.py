"""Produce requests that look like the last ones: read by one look-up, answered by one `pack`.

A producer sends batch after batch to the partitions of a topic; all bytes
between the correlation id and the partition are then equal. librdkafka puts
one partition into a request, so that nearly all of its requests are like that.
"""

from struct import Struct
from typing import NamedTuple

from headrace.protocol.primitives import INT32, Buffer, read_uvarint, write_array_length
from headrace.protocol.produce import (
    FLEXIBLE_FROM,
    NO_ERRORS_V8,
    NO_ERRORS_V9,
    NO_THROTTLE,
    ProduceRequest,
    topic_bytes,
)

# A connection that writes to more topics than this forgets them all and begins anew.
MAX_SHAPES = 16
_START = Struct(">ii")  # API key and version, correlation id
_BETWEEN_AT = _START.size
_FLEXIBLE_END = b"\0\0\0"  # no tagged fields in partition, topic and request


class ProduceShape:
    """What requests for one topic have in common."""

    __slots__ = ("_head", "_pack", "_size", "_tail", "acks", "is_flexible", "start", "topic",
                 "version")  # fmt: skip

    def __init__(self, start: int, version: int, acks: int, topic: bytes) -> None:
        self.is_flexible = is_flexible = version >= FLEXIBLE_FROM
        self.start = start  # API key and version, as one number
        self.version = version
        self.acks = acks
        self.topic = topic
        one = write_array_length(1, is_compact=is_flexible)
        self._head = (b"\0" if is_flexible else b"") + one + topic_bytes(topic, version) + one
        self._tail = b""
        if version >= 8:
            self._tail = NO_ERRORS_V9 + b"\0\0" if is_flexible else NO_ERRORS_V8
        self._tail += NO_THROTTLE + (b"\0" if is_flexible else b"")
        # size, correlation id, head, partition, error code, base offset, append time[, log start]
        numbers = "ihqqq" if version >= 5 else "ihqq"
        struct = Struct(f">ii{len(self._head)}s{numbers}{len(self._tail)}s")
        self._pack = struct.pack
        self._size = struct.size - 4

    def write_success(
        self,
        correlation_id: int,
        partition: int,
        base_offset: int,
        log_append_time: int,
        log_start_offset: int,
    ) -> bytes:
        """Encode the frame that acknowledges one appended batch."""
        if self.version >= 5:
            return self._pack(
                self._size, correlation_id, self._head, partition, 0, base_offset,
                log_append_time, log_start_offset, self._tail,
            )  # fmt: skip
        return self._pack(
            self._size, correlation_id, self._head, partition, 0, base_offset, log_append_time,
            self._tail,
        )  # fmt: skip


class ShapedRequest(NamedTuple):
    """A request that has a known shape: one batch, at [start, end), for one partition."""

    shape: ProduceShape
    correlation_id: int
    partition: int
    start: int
    end: int


class ProduceShapes:
    """The shapes one connection has sent."""

    __slots__ = ("_by_between", "_lengths")

    def __init__(self) -> None:
        self._by_between: dict[bytes, ProduceShape] = {}
        self._lengths: list[int] = []

    def learn(
        self, buffer: Buffer, start: int, end: int, version: int, request: ProduceRequest
    ) -> None:
        """Remember the shape of a request that later ones are likely to repeat."""
        if request.transactional_id is not None or len(request.topics) != 1:
            return
        topic, spans = request.topics[0]
        if len(spans) != 1 or spans[0].start < 0:
            return
        span = spans[0]
        is_compact = version >= FLEXIBLE_FROM
        prefix = len(write_array_length(span.end - span.start, is_compact=is_compact))
        between = bytes(buffer[start + _BETWEEN_AT : span.start - prefix - 4])
        if len(self._by_between) >= MAX_SHAPES:
            self._by_between.clear()
            self._lengths.clear()
        start_number = INT32.unpack_from(buffer, start)[0]
        self._by_between[between] = ProduceShape(start_number, version, request.acks, topic)
        if len(between) not in self._lengths:
            self._lengths.append(len(between))
        if self.match(buffer, start, end) is None:
            del self._by_between[between]  # e.g. tagged fields that this does not read

    def match(self, buffer: Buffer, start: int, end: int) -> ShapedRequest | None:
        """Return the request at `start` when it has a known shape."""
        for length in self._lengths:
            position = start + _BETWEEN_AT + length
            shape = self._by_between.get(bytes(buffer[start + _BETWEEN_AT : position]))
            if shape is None or position + 9 > end:
                continue
            first, correlation_id = _START.unpack_from(buffer, start)
            if first != shape.start:
                return None
            (partition,) = INT32.unpack_from(buffer, position)
            position += 4
            if shape.is_flexible:
                size, position = read_uvarint(buffer, position, end)
                stop = position + size - 1
                is_whole = stop + 3 == end and bytes(buffer[stop:end]) == _FLEXIBLE_END
            else:
                stop = position + 4 + INT32.unpack_from(buffer, position)[0]
                position += 4
                is_whole = stop == end
            if not is_whole or stop <= position:
                return None
            return ShapedRequest(shape, correlation_id, partition, position, stop)
        return None
