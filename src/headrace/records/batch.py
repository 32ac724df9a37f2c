"""The header of a v2 record batch, read and patched in place.

Base offset and leader epoch lie outside the checksum, so a broker stamps them
without touching the records; everything from `attributes` on is covered by it.
"""

import struct
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LENGTH_PREFIX_SIZE = 12  # base offset and batch length, which the length does not count
MIN_BATCH_LENGTH = HEADER_SIZE - LENGTH_PREFIX_SIZE
CURRENT_MAGIC = 2
CHECKSUM_START = 21  # the CRC covers everything from `attributes` to the end

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
MAX_SEQUENCE = 2**31 - 1

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

_PLACE = struct.Struct(">qii")  # base offset, batch length, leader epoch
_CRC_AND_ATTRIBUTES = struct.Struct(">Ih")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")
_CRC_AT = 17
_ATTRIBUTES_AT = 21
ATTRIBUTES_LOW_AT = 22  # the byte of them that holds the codec
_MAX_TIMESTAMP_AT = 35


class BatchHeader(NamedTuple):
    """The fixed 61 bytes, in the order they lie in."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LENGTH_PREFIX_SIZE

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """`base_timestamp` is then the time from which tombstones may go."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def has_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap from 2**31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE


def peek_header(buffer: Buffer, position: int = 0) -> BatchHeader | None:
    """The header at `position`, unchecked; None when fewer than 61 bytes are left."""
    try:
        return BatchHeader._make(HEADER.unpack_from(buffer, position))
    except struct.error:
        return None


def compute_crc(batch: Buffer) -> int:
    """The checksum that the bytes of this one whole batch call for."""
    return int(crc32c(memoryview(batch)[CHECKSUM_START:]))


def crc_is_valid(batch: Buffer) -> bool:
    """Whether the stored checksum is that of the bytes; False when there is no header."""
    header = peek_header(batch)
    return header is not None and header.crc == compute_crc(batch)


def stamp(batch: Buffer, base_offset: int, leader_epoch: int) -> None:
    """Give the batch its place in a log; the checksum stays true."""
    _PLACE.pack_into(batch, 0, base_offset, len(batch) - LENGTH_PREFIX_SIZE, leader_epoch)


def stamp_append_time(batch: Buffer, now_ms: int) -> None:
    """Make every record of the batch carry the broker's clock, and seal it again."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, now_ms)
    seal(batch)


def correct_max_timestamp(batch: Buffer, timestamp: int) -> None:
    """Say what the largest timestamp of the records is, and seal the batch again."""
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, timestamp)
    seal(batch)


def seal(batch: Buffer) -> None:
    """Write the checksum of what the batch now holds."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    _CRC_AND_ATTRIBUTES.pack_into(batch, _CRC_AT, compute_crc(batch), attributes)
