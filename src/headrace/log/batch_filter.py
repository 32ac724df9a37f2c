"""What compaction leaves of one batch: all of it, some records, an empty shell, or nothing.

Invariant: base offset, last offset, producer, sequence and leader epoch never change. A
tombstone starts its time to live the first time it is seen here: from then on the batch carries
its delete horizon (attributes bit 6, and the base timestamp is the horizon: KAFKA-8522).
"""

from collections.abc import Callable

from headrace.log.key_map import plain_records
from headrace.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX_SIZE,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    Buffer,
    seal,
)
from headrace.records.codecs import compress
from headrace.records.record import encode_varint
from headrace.records.spans import RecordSpan, iter_spans

Fields = tuple[int, ...]


class BatchFilter:
    """Decides for the batches of one compaction. `latest`: a key's last offset, or the default."""

    def __init__(
        self, latest: Callable[[bytes, int], int], now_ms: int, delete_retention_ms: int
    ) -> None:
        self._latest = latest
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def apply(self, fields: Fields, buffer: Buffer, at: int) -> Buffer | None:
        """The batch to write, which may be the very same bytes; None when nothing is left."""
        attributes = fields[5]
        whole = memoryview(buffer)[at : at + fields[1] + LENGTH_PREFIX_SIZE]
        if attributes & CONTROL_BIT:
            return whole  # markers stay: what they decide may lie anywhere before them
        if not fields[12]:
            return None
        records, start = plain_records(fields, buffer, at)
        kept, has_tombstones = self._choose(fields, records, start)
        if not kept:
            return None
        # A transactional tombstone has superseded nothing here, so it must never go.
        is_transactional = bool(attributes & TRANSACTIONAL_BIT)
        sets_horizon = (
            has_tombstones and not attributes & DELETE_HORIZON_BIT and not is_transactional
        )
        if sets_horizon:
            return _with_horizon(fields, records, kept, self._now_ms + self._delete_retention_ms)
        if len(kept) == fields[12]:
            return whole
        body = b"".join([records[span.start : span.end] for span in kept])
        return _rebuild(fields, kept, body, attributes, fields[7])

    def _choose(self, fields: Fields, records: bytes, start: int) -> tuple[list[RecordSpan], bool]:
        """The records that stay, and whether a tombstone is among them."""
        base_offset, attributes = fields[0], fields[5]
        drops_tombstones = (
            bool(attributes & DELETE_HORIZON_BIT)
            and not attributes & TRANSACTIONAL_BIT
            and self._now_ms >= fields[7]
        )
        latest = self._latest
        kept: list[RecordSpan] = []
        has_tombstones = False
        for span in iter_spans(records, fields[12], start):
            if span.key is None or latest(span.key, -1) > base_offset + span.offset_delta:
                continue
            if not span.has_value:
                if drops_tombstones:
                    continue
                has_tombstones = True
            kept.append(span)
        return kept, has_tombstones


def empty_shell(fields: Fields) -> bytes:
    """The batch without its records: it holds a place, or a producer's last sequence."""
    batch = bytearray(HEADER_SIZE)
    attributes = fields[5] & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    HEADER.pack_into(
        batch,
        0,
        fields[0],
        HEADER_SIZE - LENGTH_PREFIX_SIZE,
        *fields[2:5],
        attributes,
        fields[6],
        fields[8],  # as Kafka's shells: the maximum stands for both timestamps
        *fields[8:12],
        0,
    )
    seal(batch)
    return bytes(batch)


def _with_horizon(fields: Fields, records: bytes, kept: list[RecordSpan], horizon_ms: int) -> bytes:
    """Timestamps count from the base timestamp, so each record is written anew."""
    shift = fields[7] - horizon_ms
    pieces = []
    for span in kept:
        body = b"".join(
            (
                records[span.body : span.body + 1],
                encode_varint(span.timestamp_delta + shift),
                records[span.offset_delta_at : span.end],
            )
        )
        pieces += [encode_varint(len(body)), body]
    return _rebuild(fields, kept, b"".join(pieces), fields[5] | DELETE_HORIZON_BIT, horizon_ms)


def _rebuild(
    fields: Fields, kept: list[RecordSpan], body: bytes, attributes: int, base_timestamp: int
) -> bytes:
    max_timestamp = fields[8]
    if not attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = fields[7] + max([span.timestamp_delta for span in kept])
    payload = compress(attributes & CODEC_MASK, body)
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(
        batch,
        0,
        fields[0],
        len(batch) - LENGTH_PREFIX_SIZE,
        *fields[2:5],
        attributes,
        fields[6],
        base_timestamp,
        max_timestamp,
        *fields[9:12],
        len(kept),
    )
    batch[HEADER_SIZE:] = payload
    seal(batch)
    return bytes(batch)
