"""The gate that every batch a producer sends goes through.

What passes is one whole v2 batch whose bytes, count and offsets agree, so the log
may append it without looking inside.
"""

import re

from headrace.errors import (
    CorruptMessageError,
    InvalidRecordError,
    MessageTooLargeError,
    RecordError,
)
from headrace.records.batch import CODEC_MASK, CURRENT_MAGIC, HEADER, HEADER_SIZE, BatchHeader
from headrace.records.codecs import Allowance, decompress
from headrace.records.scan import CORRUPT, check_batch, check_records

_RECORD = re.compile(r"record (\d+) ")
_unpack_header = HEADER.unpack_from
_new_tuple = tuple.__new__


def check_for_append(
    batch: memoryview,
    *,
    max_message_bytes: int,
    needs_keys: bool,
    allowance: Allowance | None = None,
) -> BatchHeader:
    """The header of a batch that may be appended, else a RecordError that says why not.

    Kafka looks into compressed batches too, so this does, at the price of decompressing.
    DecompressedTooLargeError tells that more than the allowance would come of it.
    """
    if len(batch) > max_message_bytes:
        _refuse_when_one_batch(batch, max_message_bytes)
    fault = check_batch(batch, needs_keys)
    if fault is not None:
        raise _error_for(*fault)
    # Past BatchHeader's own constructor: this runs once for every batch there is.
    header: BatchHeader = _new_tuple(BatchHeader, _unpack_header(batch))
    if header[5] & CODEC_MASK:  # attributes
        _check_compressed(batch, header, needs_keys, allowance or Allowance())
    if header[9] >= 0 > header[11]:  # producer id, base sequence
        raise InvalidRecordError(
            f"base sequence {header.base_sequence} of a batch with producer id {header.producer_id}"
        )
    return header


def _refuse_when_one_batch(batch: memoryview, max_message_bytes: int) -> None:
    """Too large is said before a checksum is paid for; of other bytes the scanner knows more."""
    if len(batch) < HEADER_SIZE:
        return
    header = BatchHeader._make(_unpack_header(batch))
    if header.magic == CURRENT_MAGIC and header.size == len(batch):
        raise MessageTooLargeError(header.size, max_message_bytes)


def _error_for(kind: int, sentence: str) -> RecordError:
    return CorruptMessageError(sentence) if kind == CORRUPT else _invalid(sentence)


def _invalid(sentence: str) -> InvalidRecordError:
    # The scanners begin what they say of one record with "record N".
    named = _RECORD.match(sentence)
    return InvalidRecordError(sentence, int(named[1]) if named else -1)


def _check_compressed(
    batch: memoryview, header: BatchHeader, needs_keys: bool, allowance: Allowance
) -> None:
    records = decompress(header.codec, batch[HEADER_SIZE:], allowance.left_bytes)
    allowance.left_bytes -= len(records)
    fault = check_records(records, header.record_count, needs_keys)
    if fault is not None:
        raise _invalid(fault)
