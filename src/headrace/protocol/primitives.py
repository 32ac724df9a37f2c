"""Kafka's variable-length primitives, read from and written to plain buffers.

Readers take (buffer, position) and return (value, next position); running off
the buffer raises WireError, never IndexError.
"""

from struct import Struct

from headrace.protocol.errors import WireError

INT16 = Struct(">h")
INT32 = Struct(">i")

# An unsigned varint of 32 bits has at most five bytes.
_MAX_VARINT_SHIFT = 28
# Tagged fields of one structure. Kafka's own have at most five; ten thousand empty ones in each
# of a request's structures would take seconds to step over.
MAX_TAGGED_FIELDS = 64

Buffer = bytes | bytearray | memoryview


def read_uvarint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint that must end before `end`."""
    if position >= end:
        raise WireError(f"message ends inside a varint at byte {position}")
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    shift = 7
    while True:
        if position >= end:
            raise WireError(f"message ends inside a varint at byte {position}")
        if shift > _MAX_VARINT_SHIFT:
            raise WireError(f"varint before byte {position} is longer than five bytes")
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def write_uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_int16(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read a signed 16-bit integer."""
    if position + 2 > end:
        raise WireError(f"message ends inside an int16 at byte {position}")
    return INT16.unpack_from(buffer, position)[0], position + 2


def read_int32(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read a signed 32-bit integer."""
    if position + 4 > end:
        raise WireError(f"message ends inside an int32 at byte {position}")
    return INT32.unpack_from(buffer, position)[0], position + 4


def read_span(
    buffer: Buffer, position: int, end: int, *, is_compact: bool
) -> tuple[int, int] | tuple[None, int]:
    """Read a length-prefixed byte field; return (start, end) of it, or (None, next) for null."""
    if is_compact:
        length, position = read_uvarint(buffer, position, end)
        length -= 1
    else:
        length, position = read_int32(buffer, position, end)
    return _span(position, length, end)


def read_string(
    buffer: Buffer, position: int, end: int, *, is_compact: bool
) -> tuple[bytes | None, int]:
    """Read a nullable string as its raw bytes."""
    if is_compact:
        length, position = read_uvarint(buffer, position, end)
        length -= 1
    else:
        length, position = read_int16(buffer, position, end)
    start, stop = _span(position, length, end)
    if start is None:
        return None, stop
    return bytes(buffer[start:stop]), stop


def _span(position: int, length: int, end: int) -> tuple[int, int] | tuple[None, int]:
    if length == -1:
        return None, position
    if length < 0 or position + length > end:
        raise WireError(f"field of {length} bytes at byte {position} does not fit the message")
    return position, position + length


def read_array_length(
    buffer: Buffer, position: int, end: int, *, is_compact: bool
) -> tuple[int, int]:
    """Read an array's length, null counted as empty; it cannot exceed the bytes that are left."""
    if is_compact:
        length, position = read_uvarint(buffer, position, end)
        length -= 1
    else:
        length, position = read_int32(buffer, position, end)
    if length > end - position:
        raise WireError(f"array of {length} elements at byte {position} does not fit the message")
    return max(length, 0), position


def skip_tags(buffer: Buffer, position: int, end: int) -> int:
    """Skip the tagged fields that end every flexible structure."""
    if position < end and buffer[position] == 0:
        return position + 1  # nearly always there are none
    count, position = read_uvarint(buffer, position, end)
    if count > MAX_TAGGED_FIELDS:
        raise WireError(f"{count} tagged fields; a structure may have {MAX_TAGGED_FIELDS}")
    for _ in range(count):
        _, position = read_uvarint(buffer, position, end)
        size, position = read_uvarint(buffer, position, end)
        position += size
        if position > end:
            raise WireError(f"tagged field of {size} bytes does not fit the message")
    return position


def write_string(text: bytes, *, is_compact: bool) -> bytes:
    """Encode a string from its raw bytes."""
    if is_compact:
        return write_uvarint(len(text) + 1) + text
    return INT16.pack(len(text)) + text


def write_array_length(length: int, *, is_compact: bool) -> bytes:
    """Encode the length that starts an array."""
    return write_uvarint(length + 1) if is_compact else INT32.pack(length)
