"""Produce requests that look like the last ones: read by one look-up, answered by one `pack`.

A producer sends batch after batch to the partitions of a topic; all bytes
between the correlation id and the partition are then equal. librdkafka puts
one partition into a request, so that nearly all of its requests are like that.
"""

from struct import Struct

from headrace.protocol.primitives import INT32, read_uvarint, write_array_length
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
_PARTITION_AND_SIZE = Struct(">ii")
_PARTITION_AND_VARINT = Struct(">iBBB")
_PARTITION_SIZE = 4
_MIN_REST = 8  # partition and a size, or the shortest varint and the three bytes at the end
_FLEXIBLE_END = b"\0\0\0"  # no tagged fields in partition, topic and request


# A request of known shape: shape, correlation id, partition, start and end of its one batch.
# A plain tuple: there is one for every request, and naming its fields takes longer than the rest.
ShapedRequest = tuple["ProduceShape", int, int, int, int]


class ProduceShape:
    """What requests for one topic have in common."""

    __slots__ = ("_first", "_head", "_is_flexible", "_pack", "_position", "_size", "_tail", "acks",
                 "between", "topic", "version")  # fmt: skip

    def __init__(self, first: int, between: bytes, version: int, acks: int, topic: bytes) -> None:
        self._is_flexible = is_flexible = version >= FLEXIBLE_FROM
        self._first = first  # API key and version, as one number
        self.between = between
        self._position = _BETWEEN_AT + len(between)
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

    def match(self, data: bytearray, start: int, end: int) -> ShapedRequest | None:
        """Read the request at `start`, known to have `between`, if the rest fits too."""
        position = start + self._position
        if position + _MIN_REST > end:
            return None
        first, correlation_id = _START.unpack_from(data, start)
        if self._is_flexible:
            partition, byte0, byte1, byte2 = _PARTITION_AND_VARINT.unpack_from(data, position)
            if byte0 < 0x80:
                size, position = byte0, position + 5
            elif byte1 < 0x80:
                size, position = byte0 & 0x7F | byte1 << 7, position + 6
            elif byte2 < 0x80:
                size, position = byte0 & 0x7F | (byte1 & 0x7F) << 7 | byte2 << 14, position + 7
            else:
                size, position = read_uvarint(data, position + 4, end)
            stop = position + size - 1
            is_whole = stop + 3 == end and data.startswith(_FLEXIBLE_END, stop)
        else:
            partition, size = _PARTITION_AND_SIZE.unpack_from(data, position)
            position += 8
            stop = position + size
            is_whole = stop == end
        if not is_whole or stop <= position or first != self._first:
            return None
        return self, correlation_id, partition, position, stop

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


class ProduceShapes:
    """The shapes one connection has sent, the last one used first."""

    __slots__ = ("_shapes",)

    def __init__(self) -> None:
        self._shapes: list[ProduceShape] = []

    def learn(
        self, data: bytearray, start: int, end: int, version: int, request: ProduceRequest
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
        between = bytes(data[start + _BETWEEN_AT : span.start - prefix - _PARTITION_SIZE])
        first = INT32.unpack_from(data, start)[0]
        shape = ProduceShape(first, between, version, request.acks, topic)
        if shape.match(data, start, end) is not None:  # not so e.g. with tagged fields
            self._shapes.insert(0, shape)
            del self._shapes[MAX_SHAPES:]

    def match(self, data: bytearray, start: int, end: int) -> ShapedRequest | None:
        """Return the request at `start` when it has a known shape."""
        for at, shape in enumerate(self._shapes):
            if data.startswith(shape.between, start + _BETWEEN_AT):
                if at:
                    self._shapes.insert(0, self._shapes.pop(at))
                return shape.match(data, start, end)
        return None
