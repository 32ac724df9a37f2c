"""Which partitions of `__consumer_offsets` are in memory, and how the others get there.

Each is read once, when somebody asks for a group in it or in the background after the start.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from headrace.broker.clock import Clock
from headrace.broker.groups.loading import read_live_records
from headrace.broker.groups.offsets_topic import OffsetsTopic, partition_for
from headrace.coordinators.groups.coordinator import GroupCoordinator
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.offset_requests import forget_missing_topics
from headrace.errors import CoordinatorNotAvailableError, HeadraceError

_log = logging.getLogger(__name__)

# Records applied in one go: a few milliseconds.
_APPLIED_AT_ONCE = 1_000


class Loader:
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
            self._coordinator.apply_all(part, self._clock.steady_ms())
        self._loaded.add(partition)
        group_ids = dict.fromkeys(record.group_id for record in records)
        now_ms = self._clock.steady_ms()
        self._coordinator.loaded(group_ids, now_ms)
        for group_id in group_ids:
            self._carry_out(forget_missing_topics(self._coordinator, group_id, now_ms))
