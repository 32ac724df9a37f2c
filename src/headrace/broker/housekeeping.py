"""What a broker does between requests: retention, checkpoints, flushes, idle clients, groups."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from headrace.broker.compacting import Compacting
from headrace.broker.service import Service
from headrace.broker.topic_names import GROUP_METADATA_TOPIC
from headrace.broker.turns import Turn
from headrace.config import LONG_MAX
from headrace.errors import HeadraceError
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog

_log = logging.getLogger(__name__)

# How often idle connections are looked for, and how long one must be quiet to lose its buffer.
_SWEEP_SECONDS = 5.0
_QUIET_MS = 5_000
# flush.ms is honoured to this precision.
_FLUSH_CHECK_SECONDS = 1.0
# Groups that nobody asks for are read this long after the start: until then others have a say.
_GROUPS_AFTER_SECONDS = 2.0


class Housekeeping:
    """Runs jobs on the event loop, a short piece at a time; slow disk work goes to a thread."""

    def __init__(self, service: Service, logs: LogDirectory) -> None:
        self._service = service
        self._logs = logs
        self._tasks: list[asyncio.Task[None]] = []
        self._dirty_since: dict[PartitionLog, int] = {}
        settings = service.broker.settings
        self._retention_seconds = settings.int("log.retention.check.interval.ms") / 1000
        self._expiry_seconds = settings.int("offsets.retention.check.interval.ms") / 1000
        self._checkpoint_seconds = settings.int("log.flush.offset.checkpoint.interval.ms") / 1000

    def start(self) -> None:
        """Begin."""
        for seconds, job in (
            (self._retention_seconds, self._enforce_retention),
            (_SWEEP_SECONDS, self._sweep),
            (_FLUSH_CHECK_SECONDS, self._flush_due),
            (self._checkpoint_seconds, self._checkpoint),
        ):
            self._tasks.append(asyncio.create_task(self._repeat(seconds, job)))
        self._tasks.append(asyncio.create_task(Compacting(self._service, self._logs).run()))
        self._tasks.append(asyncio.create_task(self._load_groups()))
        self._tasks.append(asyncio.create_task(self._repeat_expiry()))

    async def stop(self) -> None:
        """End all jobs; a checkpoint under way is waited for."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, seconds: float, job: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await job()
            except (HeadraceError, OSError) as error:
                _log.error("%s failed: %s", job.__name__.strip("_"), error)

    async def _load_groups(self) -> None:
        broker = self._service.broker
        await asyncio.sleep(_GROUPS_AFTER_SECONDS)
        if broker.topics.has(GROUP_METADATA_TOPIC):
            await broker.groups.load()

    async def _repeat_expiry(self) -> None:
        broker = self._service.broker
        while True:
            await asyncio.sleep(self._expiry_seconds)
            try:
                if broker.has_groups:
                    await broker.groups.expire()
            except HeadraceError as error:
                _log.error("expiry of offsets failed: %s", error)

    async def _checkpoint(self) -> None:
        await self._service.broker.topics.checkpoint()

    async def _enforce_retention(self) -> None:
        service = self._service
        deleted = await service.broker.topics.enforce_retention(service.broker.now_ms())
        service.metrics.segments_deleted.value += deleted

    async def _sweep(self) -> None:
        # Who has spoken during a stall is heard before it counts as idle.
        self._service.sweep_idle(await self._service.broker.clock.settle(), _QUIET_MS)
        await self._service.broker.topics.open_some()

    async def _flush_due(self) -> None:
        """Sync logs that have had unsynced messages for flush.ms, or segments closed unsynced."""
        now_ms = self._service.broker.clock.steady_ms()
        dirty_since: dict[PartitionLog, int] = {}
        turn = Turn()
        for log in list(self._logs.loaded()):
            if turn.is_over:
                await turn.breathe()
            if log.has_unsynced_segments and log.sync_failure is None:
                self._service.sync.wait(log, _ignore)
            if log.config.flush_ms == LONG_MAX or log.recovery_point >= log.log_end_offset:
                continue
            if not self._logs.is_current(log):
                continue  # deleted since
            since = dirty_since[log] = self._dirty_since.get(log, now_ms)
            if now_ms - since >= log.config.flush_ms:
                dirty_since[log] = now_ms
                self._service.sync.wait(log, _ignore)
        self._dirty_since = dirty_since


def _ignore(_: object) -> None:
    """A background sync has no one to tell; failures are logged where they happen."""
