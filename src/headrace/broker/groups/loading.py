"""Reads a partition of `__consumer_offsets`: what is left of it when every key has its last value.

Reading and decoding run in a thread, a piece at a time, so that others are served meanwhile.
Offsets committed in a transaction count from its commit marker on, and not at all without one.
"""

import asyncio
import logging
import os

from headrace.coordinators.groups.codec import decode
from headrace.coordinators.groups.records import GroupRecord
from headrace.errors import InvalidRecordError
from headrace.log.partition_log import FileSlice, PartitionLog
from headrace.records.batch import BatchHeader, peek_header
from headrace.records.record import ControlType, decode_control, iter_records

_log = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 20

_Values = dict[bytes, bytes | None]


class LiveRecords:
    """The last value of each key, in the order in which they were written."""

    def __init__(self) -> None:
        self._values: _Values = {}
        self._open: dict[int, _Values] = {}  # by producer id: transactions without a marker yet

    def take(self, pieces: list[FileSlice]) -> int:
        """Take in whole batches; the offset behind the last."""
        next_offset = 0
        for piece in pieces:
            content = memoryview(os.pread(piece.file.fd, piece.length, piece.position))
            position = 0
            while (header := peek_header(content, position)) is not None:
                self._take_batch(content[position : position + header.size], header)
                position += header.size
                next_offset = header.next_offset
        return next_offset

    def _take_batch(self, batch: memoryview, header: BatchHeader) -> None:
        if header.is_control:
            for record in iter_records(batch):
                ended = self._open.pop(header.producer_id, {})
                if decode_control(record).type is ControlType.COMMIT:
                    for key, value in ended.items():
                        _set_last(self._values, key, value)
            return
        is_open = header.is_transactional
        values = self._open.setdefault(header.producer_id, {}) if is_open else self._values
        for record in iter_records(batch):
            if record.key is not None:
                _set_last(values, record.key, record.value)

    def decoded(self) -> list[GroupRecord]:
        """All that is alive; what cannot be read is left out, and said so in the log."""
        records = []
        for key, value in self._values.items():
            if value is None:
                continue
            try:
                record = decode(key, value)
            except InvalidRecordError as error:
                _log.warning("a record of __consumer_offsets is passed over: %s", error)
                continue
            if record is not None:
                records.append(record)
        return records


def _set_last(values: _Values, key: bytes, value: bytes | None) -> None:
    values.pop(key, None)
    values[key] = value


async def read_live_records(log: PartitionLog) -> list[GroupRecord]:
    """Read the whole log; StorageError where it is damaged."""
    live = LiveRecords()
    offset, end_offset = log.log_start_offset, log.log_end_offset
    while offset < end_offset:
        pieces = log.read(offset, _PIECE_BYTES)
        if not pieces:
            break
        offset = await asyncio.to_thread(live.take, pieces)
    return await asyncio.to_thread(live.decoded)
