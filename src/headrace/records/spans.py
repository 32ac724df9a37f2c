"""Where each record of a batch lies, and its key: what compaction looks at, and no more.

Values and headers are passed over unread, so this is several times faster than decoding.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headrace.records.errors import InvalidRecordError
from headrace.records.record import decode_varint


class RecordSpan(NamedTuple):
    """One record at [start, end) of its batch's plain records, its length prefix included.

    Its attributes are at `body`; from `offset_delta_at` on it does not depend on timestamps.
    """

    start: int
    end: int
    body: int
    offset_delta_at: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def iter_spans(records: bytes, count: int, position: int = 0) -> Iterator[RecordSpan]:
    """The `count` records from `position` on. InvalidRecordError when they are cut short."""
    size = len(records)
    for index in range(count):
        try:
            start = position
            length, body = decode_varint(records, position)
            position = body + length
            if length < 1 or position > size:
                raise InvalidRecordError(f"record {index} is cut short")
            timestamp_delta, offset_delta_at = decode_varint(records, body + 1)
            offset_delta, at = decode_varint(records, offset_delta_at)
            key_length, at = decode_varint(records, at)
            key = None
            if key_length >= 0:
                key = records[at : at + key_length]
                at += key_length
            value_length, at = decode_varint(records, at)
            if at + max(value_length, 0) > position:
                raise InvalidRecordError(f"record {index} is cut short")
        except IndexError:
            raise InvalidRecordError(f"record {index} is cut short") from None
        yield RecordSpan(
            start,
            position,
            body,
            offset_delta_at,
            timestamp_delta,
            offset_delta,
            key,
            value_length >= 0,
        )


def read_keys(records: bytes, count: int, position: int = 0) -> list[tuple[int, bytes | None]]:
    """(offset delta, key) of each record: `iter_spans` with everything else left out.

    Numbers of one byte, which nearly all are, are read in place.
    """
    found: list[tuple[int, bytes | None]] = []
    size = len(records)
    try:
        for _ in range(count):
            length, position = decode_varint(records, position)
            end = position + length
            position += 1
            while records[position] > 0x7F:  # the timestamp, which does not matter here
                position += 1
            raw = records[position + 1]
            if raw > 0x7F:
                delta, position = decode_varint(records, position + 1)
            else:
                delta = raw >> 1
                position += 2
            raw = records[position]
            if raw > 0x7F:
                key_length, position = decode_varint(records, position)
            else:
                key_length = raw >> 1 ^ -(raw & 1)
                position += 1
            if length < 1 or end > size or position + key_length > end:
                raise InvalidRecordError(f"record {len(found)} is cut short")
            key = None if key_length < 0 else records[position : position + key_length]
            found.append((delta, key))
            position = end
    except IndexError:
        raise InvalidRecordError(f"record {len(found)} is cut short") from None
    return found
