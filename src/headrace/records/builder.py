"""Writes v2 batches: what the broker appends on its own account, and what tests send."""

from collections.abc import Iterable, Sequence

from headrace.records.batch import (
    CONTROL_BIT,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    seal,
)
from headrace.records.codecs import Codec, compress
from headrace.records.record import Record, encode_varint

_NULL = encode_varint(-1)
_NO_RECORD_ATTRIBUTES = b"\x00"


def numbered(
    values: Iterable[bytes | None],
    *,
    first_offset: int = 0,
    timestamp: int = 0,
    key: bytes | None = None,
) -> list[Record]:
    """One record a value, with consecutive offsets and the same key and timestamp."""
    return [
        Record(offset, timestamp, key, value, [])
        for offset, value in enumerate(values, first_offset)
    ]


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    codec: int = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    leader_epoch: int = 0,
) -> bytearray:
    """One sealed batch. Records keep their distance from the first: its offset is
    `base_offset`, or its own when that is None. Offsets must ascend."""
    if not records:
        raise ValueError("a batch has at least one record")
    first = records[0]
    attributes = codec
    if is_transactional:
        attributes |= TRANSACTIONAL_BIT
    if is_control:
        attributes |= CONTROL_BIT
    plain = b"".join(_encode_all(records, first.offset, first.timestamp))
    payload = compress(codec, plain)
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(
        batch,
        0,
        first.offset if base_offset is None else base_offset,
        len(batch) - LENGTH_PREFIX_SIZE,
        leader_epoch,
        CURRENT_MAGIC,
        0,
        attributes,
        records[-1].offset - first.offset,
        first.timestamp,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch[HEADER_SIZE:] = payload
    seal(batch)
    return batch


def _encode_all(records: Sequence[Record], first_offset: int, base_timestamp: int) -> list[bytes]:
    encoded: list[bytes] = []
    previous_offset = first_offset - 1
    for record in records:
        if record.offset <= previous_offset:
            raise ValueError(f"offset {record.offset} does not follow {previous_offset}")
        previous_offset = record.offset
        body = b"".join(
            (
                _NO_RECORD_ATTRIBUTES,
                encode_varint(record.timestamp - base_timestamp),
                encode_varint(record.offset - first_offset),
                _encode_bytes(record.key),
                _encode_bytes(record.value),
                encode_varint(len(record.headers)),
                *(
                    _encode_bytes(name.encode("utf-8", "surrogateescape")) + _encode_bytes(value)
                    for name, value in record.headers
                ),
            )
        )
        encoded.append(encode_varint(len(body)) + body)
    return encoded


def _encode_bytes(data: bytes | None) -> bytes:
    return _NULL if data is None else encode_varint(len(data)) + data
