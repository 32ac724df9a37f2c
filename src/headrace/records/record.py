"""The records inside a batch: decoding them, and the numbers they are made of."""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from headrace.records.batch import HEADER_SIZE, Buffer, peek_header
from headrace.records.codecs import decompress
from headrace.records.errors import CorruptMessageError, InvalidRecordError

_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_VALUE = struct.Struct(">hi")


class Record(NamedTuple):
    """One message. `offset` is absolute; None is Kafka's null."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class ControlType(IntEnum):
    """How a transaction ended."""

    ABORT = 0
    COMMIT = 1


class ControlRecord(NamedTuple):
    """The one record of a control batch."""

    type: ControlType
    coordinator_epoch: int


def encode_varint(value: int) -> bytes:
    """`value` zigzagged, seven bits a byte; right for Kafka's varint and varlong alike."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def decode_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The number at `position` and where it ends; IndexError when it is cut short."""
    byte = buffer[position]
    position += 1
    raw = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        byte = buffer[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise InvalidRecordError("a number has more than ten bytes")
    return raw >> 1 ^ -(raw & 1), position


def iter_records(batch: Buffer) -> Iterator[Record]:
    """The records of one whole batch, in order, decompressed when they have to be."""
    header = peek_header(batch)
    if header is None or header.size > len(batch):
        raise CorruptMessageError(f"a batch is cut short at {len(batch)} bytes")
    records = memoryview(decompress(header.codec, memoryview(batch)[HEADER_SIZE : header.size]))
    position = 0
    for index in range(header.record_count):
        try:
            length, start = decode_varint(records, position)
            position = start + length
            if not start < position <= len(records):
                raise InvalidRecordError(f"record {index} is cut short")
            timestamp_delta, offset_delta, key, value, headers = _decode_body(
                records[start:position]
            )
        except (IndexError, ValueError):
            raise InvalidRecordError(f"record {index} is cut short") from None
        timestamp = (
            header.max_timestamp
            if header.is_log_append_time
            else header.base_timestamp + timestamp_delta
        )
        yield Record(header.base_offset + offset_delta, timestamp, key, value, headers)


_Body = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def _decode_body(body: memoryview) -> _Body:
    # The first byte holds attributes, of which Kafka has defined none.
    timestamp_delta, position = decode_varint(body, 1)
    offset_delta, position = decode_varint(body, position)
    key, position = _decode_bytes(body, position)
    value, position = _decode_bytes(body, position)
    header_count, position = decode_varint(body, position)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(header_count):
        name, position = _decode_bytes(body, position)
        if name is None:
            raise InvalidRecordError("a header has no key")
        header_value, position = _decode_bytes(body, position)
        # Not every client checks that the name is UTF-8: keep such bytes recoverable.
        headers.append((name.decode("utf-8", "surrogateescape"), header_value))
    return timestamp_delta, offset_delta, key, value, headers


def _decode_bytes(body: memoryview, position: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(body, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(body):
        raise ValueError("the bytes run past the record")
    return bytes(body[position:end]), end


def decode_control(record: Record) -> ControlRecord:
    """What a control batch's record says; InvalidRecordError when it is not one."""
    try:
        _, control_type = _CONTROL_KEY.unpack_from(record.key or b"")
        _, coordinator_epoch = _CONTROL_VALUE.unpack_from(record.value or b"")
        return ControlRecord(ControlType(control_type), coordinator_epoch)
    except (struct.error, ValueError):
        raise InvalidRecordError(
            f"the record at offset {record.offset} is not a transaction marker"
        ) from None
