"""The gate that every batch a producer sends goes through.

What passes is one whole v2 batch whose bytes, count, offsets and timestamps agree, so the log
may append it without looking inside.
"""

from typing import TYPE_CHECKING

from headrace.config import LONG_MAX, LONG_MIN, LogConfig
from headrace.records.batch import (
    CODEC_MASK,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    Buffer,
    correct_max_timestamp,
)
from headrace.records.codecs import Allowance, Codec, decompress
from headrace.records.errors import (
    BatchTooLargeError,
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageTooLargeError,
    RecordError,
    UnsupportedCompressionError,
)
from headrace.records.scan import (
    CLAIMS_APPEND_TIME,
    CORRUPT,
    NO_KEY,
    TIME_OUT_OF_RANGE,
    check_batch,
    check_records,
)

if TYPE_CHECKING:
    from headrace.records.scan_fallback import Finding, RecordFaults

_unpack_header = HEADER.unpack_from
_new_tuple = tuple.__new__


def check_for_append(
    batch: memoryview,
    config: LogConfig,
    now_ms: int,
    takes_zstd: bool = True,
    allowance: Allowance | None = None,
) -> BatchHeader:
    """The header of a batch that may be appended, else a RecordError that says why not.

    Kafka looks into compressed batches too, so this does, at the price of decompressing. A
    header with another `max_timestamp` than that of its records is corrected in place.
    DecompressedTooLargeError tells that more than the allowance would come of its records.
    Nothing but its arguments is read and written: any thread may call it.
    """
    if not takes_zstd:
        _refuse_zstd(batch)
    size = len(batch)
    if size > config.max_message_bytes:
        _refuse_when_one_batch(batch, config.max_message_bytes)
    if config.is_log_append_time:
        earliest, latest = LONG_MIN, LONG_MAX
    else:
        earliest = now_ms - config.timestamp_before_max_ms
        latest = now_ms + config.timestamp_after_max_ms
    found = check_batch(batch, config.is_compacted, earliest, latest)
    if found is not None:
        _settle(batch, found, earliest, latest)
    # Past BatchHeader's own constructor: this runs once for every batch there is.
    header: BatchHeader = _new_tuple(BatchHeader, _unpack_header(batch))
    if header[5] & CODEC_MASK:  # attributes
        allowance = allowance or Allowance()
        records = decompress(header.codec, batch[HEADER_SIZE:], allowance.left_bytes)
        allowance.left_bytes -= len(records)
        header = _check_inflated(batch, header, records, config.is_compacted, earliest, latest)
    if header[9] >= 0 > header[11]:  # producer id, base sequence
        raise InvalidRecordError(
            f"base sequence {header.base_sequence} of a batch with producer id {header.producer_id}"
        )
    if size > config.segment_bytes:
        raise BatchTooLargeError(size, config.segment_bytes, "segment.bytes")
    return header


def _refuse_zstd(batch: memoryview) -> None:
    header = BatchHeader._make(_unpack_header(batch)) if len(batch) >= HEADER_SIZE else None
    if header is not None and header.magic == CURRENT_MAGIC and header.codec == Codec.ZSTD:
        raise UnsupportedCompressionError(
            "zstd needs Produce v7 or later; choose another compression or a newer client"
        )


def _refuse_when_one_batch(batch: memoryview, max_message_bytes: int) -> None:
    """Too large is said before a checksum is paid for; of other bytes the scanner knows more."""
    if len(batch) < HEADER_SIZE:
        return
    header = BatchHeader._make(_unpack_header(batch))
    if header.magic == CURRENT_MAGIC and header.size == len(batch):
        raise MessageTooLargeError(header.size, max_message_bytes)


def _check_inflated(
    batch: memoryview,
    header: BatchHeader,
    records: Buffer,
    needs_keys: bool,
    earliest: int,
    latest: int,
) -> BatchHeader:
    found = check_records(
        records,
        header.record_count,
        header.base_timestamp,
        bool(header.attributes & LOG_APPEND_TIME_BIT),
        needs_keys,
        earliest,
        latest,
    )
    if found[1] == header.max_timestamp:
        return header
    _settle(batch, found, earliest, latest)
    return BatchHeader._make(_unpack_header(batch))


def _settle(batch: memoryview, found: "Finding", earliest: int, latest: int) -> None:
    """Give the batch its true largest timestamp, or say why it is refused."""
    kind, what = found
    if isinstance(what, int):
        correct_max_timestamp(batch, what)
    elif isinstance(what, str):
        raise CorruptMessageError(what) if kind == CORRUPT else InvalidRecordError(what)
    else:
        raise _error_for(what, earliest, latest)


def _error_for(faults: "RecordFaults", earliest: int, latest: int) -> RecordError:
    """One error that names each bad record, as far as they are listed. As in Kafka, one wrong
    time makes it an error of timestamps."""
    keyless, wrong_times, listed = faults
    reasons = {
        NO_KEY: "the record has no key, and a compacted topic needs one",
        TIME_OUT_OF_RANGE: f"the record's timestamp is outside [{earliest}, {latest}]",
        CLAIMS_APPEND_TIME: "only a broker may mark records as stamped by LogAppendTime",
    }
    record_errors = [(index, reasons[kind]) for index, kind, _ in listed]
    if not wrong_times:
        sentence = f"{keyless} records have no key, and a compacted topic needs one"
        return InvalidRecordError(sentence, record_errors)
    sentence = f"{wrong_times} records have a timestamp that the topic does not take"
    first = next(((index, at) for index, kind, at in listed if kind != NO_KEY), None)
    if first is not None:
        sentence += f", the first is record {first[0]} with {first[1]}"
    if keyless:
        sentence += f"; {keyless} have no key"
    return InvalidTimestampError(sentence, record_errors)
