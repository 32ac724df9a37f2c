"""Produce (0), v3-13, by hand: requests are read in place, batches are never copied.

v5   log_start_offset in the answer
v7   zstd may be used
v8   record errors and an error message in the answer
v9   flexible encoding
v13  topics by id (KIP-516)

v10 to v12 differ only in tagged fields and in what transactions may do.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import NamedTuple

from headrace.protocol.errors import TooManyElementsError, WireError
from headrace.protocol.headers import RESPONSE_START
from headrace.protocol.primitives import (
    INT32,
    Buffer,
    read_array_length,
    read_int16,
    read_int32,
    read_span,
    read_string,
    skip_tags,
    write_array_length,
    write_string,
)
from headrace.protocol.versions import FIRST_FLEXIBLE, PRODUCE

ZSTD_FROM = 7
# As many as a topic may have: all of them, once.
MAX_PARTITIONS = 10_000
FLEXIBLE_FROM = FIRST_FLEXIBLE[PRODUCE]
TOPIC_IDS_FROM = 13
_ID_SIZE = 16

# error code, base offset, log append time[, log start offset]
_RESULT_V3 = Struct(">hqq")
_RESULT_V5 = Struct(">hqqq")
NO_ERRORS_V8 = INT32.pack(0) + b"\xff\xff"
NO_ERRORS_V9 = b"\x01\x00"
NO_THROTTLE = INT32.pack(0)


class PartitionSpan(NamedTuple):
    """Where one partition's records lie in the request buffer; start -1 for null."""

    partition: int
    start: int
    end: int


class ProduceRequest(NamedTuple):
    """A parsed request. A topic is its raw name, or its 16-byte id from v13 on."""

    transactional_id: bytes | None
    acks: int
    timeout_ms: int
    topics: list[tuple[bytes, list[PartitionSpan]]]


class PartitionResult(NamedTuple):
    """What became of one partition's batch. `record_errors`: (index in the batch, why)."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str]] = ()


def read_request(buffer: Buffer, position: int, end: int, version: int) -> ProduceRequest:
    """Read the body of a request; record bytes stay where they are."""
    is_flexible = version >= FLEXIBLE_FROM
    transactional_id, position = read_string(buffer, position, end, is_compact=is_flexible)
    acks, position = read_int16(buffer, position, end)
    timeout_ms, position = read_int32(buffer, position, end)
    topic_count, position = read_array_length(buffer, position, end, is_compact=is_flexible)
    topics: list[tuple[bytes, list[PartitionSpan]]] = []
    left = 2 * MAX_PARTITIONS  # of topics and partitions together
    for _ in range(topic_count):
        topic, position = _read_topic(buffer, position, end, version)
        partitions: list[PartitionSpan] = []
        count, position = read_array_length(buffer, position, end, is_compact=is_flexible)
        left -= 1 + count
        if left < 0:
            raise TooManyElementsError(2 * MAX_PARTITIONS - left, 2 * MAX_PARTITIONS)
        for _ in range(count):
            index, position = read_int32(buffer, position, end)
            start, position = read_span(buffer, position, end, is_compact=is_flexible)
            partitions.append(PartitionSpan(index, -1 if start is None else start, position))
            if is_flexible:
                position = skip_tags(buffer, position, end)
        if is_flexible:
            position = skip_tags(buffer, position, end)
        topics.append((topic, partitions))
    if is_flexible:
        skip_tags(buffer, position, end)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _read_topic(buffer: Buffer, position: int, end: int, version: int) -> tuple[bytes, int]:
    if version >= TOPIC_IDS_FROM:
        if position + _ID_SIZE > end:
            raise WireError("Produce request ends inside a topic id")
        return bytes(buffer[position : position + _ID_SIZE]), position + _ID_SIZE
    topic, position = read_string(buffer, position, end, is_compact=version >= FLEXIBLE_FROM)
    if topic is None:
        raise WireError("Produce request with a null topic name")
    return topic, position


def write_response(
    version: int, correlation_id: int, topics: list[tuple[bytes, list[PartitionResult]]]
) -> bytes:
    """Encode a whole response frame."""
    is_flexible = version >= FLEXIBLE_FROM
    out = bytearray(b"\0") if is_flexible else bytearray()
    out += write_array_length(len(topics), is_compact=is_flexible)
    for topic, results in topics:
        out += topic_bytes(topic, version)
        out += write_array_length(len(results), is_compact=is_flexible)
        for result in results:
            _write_result(out, version, result)
        if is_flexible:
            out += b"\0"
    out += NO_THROTTLE
    if is_flexible:
        out += b"\0"
    return RESPONSE_START.pack(len(out) + 4, correlation_id) + out


def topic_bytes(topic: bytes, version: int) -> bytes:
    """A topic as an answer names it: its name, or its id from v13 on."""
    if version >= TOPIC_IDS_FROM:
        return topic
    return write_string(topic, is_compact=version >= FLEXIBLE_FROM)


def _write_result(out: bytearray, version: int, result: PartitionResult) -> None:
    is_flexible = version >= FLEXIBLE_FROM
    out += INT32.pack(result.partition)
    numbers = (result.error_code, result.base_offset, result.log_append_time)
    if version >= 5:
        out += _RESULT_V5.pack(*numbers, result.log_start_offset)
    else:
        out += _RESULT_V3.pack(*numbers)
    if version < 8:
        return
    if result.error_message is None:
        out += NO_ERRORS_V9 if is_flexible else NO_ERRORS_V8
    else:
        _write_record_errors(out, result.record_errors, is_flexible)
        out += write_string(result.error_message.encode(), is_compact=is_flexible)
    if is_flexible:
        out += b"\0"


def _write_record_errors(
    out: bytearray, errors: Sequence[tuple[int, str]], is_flexible: bool
) -> None:
    """There may be thousands, and they have few reasons: each is encoded once."""
    out += write_array_length(len(errors), is_compact=is_flexible)
    encoded: dict[str, bytes] = {}
    for why, alike in groupby(errors, key=itemgetter(1)):
        reason = encoded.get(why)
        if reason is None:
            reason = write_string(why.encode(), is_compact=is_flexible)
            reason = encoded[why] = reason + b"\0" if is_flexible else reason
        out += reason.join([INT32.pack(index) for index, _ in alike]) + reason
