"""Which partitions of `__consumer_offsets` are in memory, and how the others get there.

Each is read once, when somebody asks for a group in it or in the background after the start: what
is left of it when every key has its last value. Reading and decoding run in a thread, a piece at a
time, so that others are served meanwhile. Offsets committed in a transaction count from its commit
marker on, and not at all without one.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

from headrace.broker.clock import Clock
from headrace.broker.groups.offsets_topic import OffsetsTopic, partition_for
from headrace.coordinators.errors import CoordinatorNotAvailableError
from headrace.coordinators.groups.codec import decode
from headrace.coordinators.groups.coordinator import GroupCoordinator
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.records import GroupRecord
from headrace.errors import HeadraceError
from headrace.log.partition_log import FileSlice, PartitionLog
from headrace.records.batch import BatchHeader, peek_header
from headrace.records.errors import InvalidRecordError
from headrace.records.record import ControlType, decode_control, iter_records

_log = logging.getLogger(__name__)

# Records applied in one go: a few milliseconds.
_APPLIED_AT_ONCE = 1_000


class GroupLoader:
    """Event-loop thread only."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        offsets_topic: OffsetsTopic,
        clock: Clock,
        carry_out: Callable[[Decision[None]], Any],
    ) -> None:
        self._coordinator, self._clock, self._carry_out = coordinator, clock, carry_out
        self._offsets_topic = offsets_topic
        self._loaded: set[int] = set()
        self._loads: dict[int, asyncio.Task[None]] = {}
        self._is_all_loaded = False

    def is_ready(self, group_id: str) -> bool:
        """Whether the group, if there is one of this name, is in memory."""
        if self._is_all_loaded or not self._offsets_topic.has_unread:
            return True
        return self._partition_of(group_id) in self._loaded

    async def ready(self, group_id: str) -> None:
        """Return when the group is in memory; raises when it cannot be read."""
        if not self.is_ready(group_id):
            await self._load(self._partition_of(group_id))

    async def all_ready(self) -> None:
        """Return when all groups are in memory; raises when some cannot be read."""
        if not self._is_all_loaded:
            for partition in range(self._partition_count):
                await self._load(partition)
            self._is_all_loaded = True

    async def load_all(self) -> None:
        """Read all groups; what cannot be read is tried again when somebody asks for it."""
        partition_count = self._partition_count
        for partition in range(partition_count):
            try:
                await self._load(partition)
            except CoordinatorNotAvailableError:
                continue  # said in the log where it happened
        self._is_all_loaded = len(self._loaded) == partition_count

    @property
    def _partition_count(self) -> int:
        """Partitions there are to read."""
        topic = self._offsets_topic.topic
        return topic.partition_count if topic and self._offsets_topic.has_unread else 0

    def _partition_of(self, group_id: str) -> int:
        return partition_for(group_id, self._partition_count)

    async def _load(self, partition: int) -> None:
        if partition in self._loaded:
            return
        load = self._loads.get(partition)
        if load is None:
            load = self._loads[partition] = asyncio.create_task(self._read(partition))
            load.add_done_callback(lambda _: self._loads.pop(partition, None))
        await asyncio.shield(load)

    async def _read(self, partition: int) -> None:
        try:
            log = self._offsets_topic.log_on_disk(partition)
            records = [] if log is None else await read_live_records(log)
        except (HeadraceError, OSError) as error:
            _log.error("groups of partition %s cannot be read: %s", partition, error)
            raise CoordinatorNotAvailableError(str(error)) from error
        for start in range(0, len(records), _APPLIED_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            part = records[start : start + _APPLIED_AT_ONCE]
            self._coordinator.registry.apply_all(part, self._clock.steady_ms())
        self._loaded.add(partition)
        group_ids = dict.fromkeys(record.group_id for record in records)
        now_ms = self._clock.steady_ms()
        self._coordinator.registry.loaded(group_ids, now_ms)
        for group_id in group_ids:
            self._carry_out(self._coordinator.forget_missing_topics(group_id, now_ms))


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
