"""From a time to a record inside one batch, natively where the scanner in C was built.

May run in any thread: nothing here keeps anything.
"""

from headrace.records.batch import HEADER_SIZE, BatchHeader, Buffer, peek_header
from headrace.records.codecs import decompress
from headrace.records.errors import CorruptMessageError, InvalidRecordError

try:
    from headrace.records._scan import find_disorder, find_header, find_newest, find_record
except ImportError:
    from headrace.records.find_fallback import (
        find_disorder,
        find_header,
        find_newest,
        find_record,
    )

__all__ = ["find_disorder", "find_header", "first_record", "newest_record"]


def first_record(batch: Buffer, timestamp: int, start_offset: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record at or after both; decompresses if it must."""
    header, records = _open(batch)
    return _believe(
        find_record(
            records,
            header.record_count,
            _base_timestamp(header),
            header.base_offset,
            header.is_log_append_time,
            timestamp,
            start_offset,
        )
    )


def newest_record(batch: Buffer, start_offset: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with the largest timestamp from there on."""
    header, records = _open(batch)
    return _believe(
        find_newest(
            records,
            header.record_count,
            _base_timestamp(header),
            header.base_offset,
            header.is_log_append_time,
            start_offset,
        )
    )


def _open(batch: Buffer) -> tuple[BatchHeader, Buffer]:
    header = peek_header(batch)
    if header is None or header.size > len(batch):
        raise CorruptMessageError(f"a batch is cut short at {len(batch)} bytes")
    return header, decompress(header.codec, memoryview(batch)[HEADER_SIZE : header.size])


def _base_timestamp(header: BatchHeader) -> int:
    return header.max_timestamp if header.is_log_append_time else header.base_timestamp


def _believe(found: tuple[int, int] | str | None) -> tuple[int, int] | None:
    if isinstance(found, str):
        raise InvalidRecordError(found)
    return found
