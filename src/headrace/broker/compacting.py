"""The job that compacts the logs of internal topics; those of other topics are left whole.

The copying runs in a thread; the event loop only decides, and swaps files at the end.
"""

import asyncio
import logging
from collections.abc import Callable

from headrace.broker.service import Service
from headrace.broker.topic_names import INTERNAL_TOPICS
from headrace.errors import HeadraceError
from headrace.log.compaction import ROLL_BYTES, Cleaning, is_worth_it, plan
from headrace.log.directory import LogDirectory
from headrace.log.errors import CorruptBatchError
from headrace.log.partition_log import PartitionLog

_log = logging.getLogger(__name__)

# log.cleaner.backoff.ms may be 0, but to look all the time would take the loop from clients.
_MIN_BACKOFF_SECONDS = 0.1


class Compacting:
    """Owned by the event loop; one log at a time."""

    def __init__(self, service: Service, logs: LogDirectory) -> None:
        self._service = service
        self._logs = logs
        # A damaged log is told once, and not tried again until a restart.
        self._uncleanable: set[PartitionLog] = set()

    async def run(self) -> None:
        """Look at the logs again and again; returns at once when compaction is off."""
        settings = self._service.broker.settings
        if not settings.bool("log.cleaner.enable"):
            return
        while True:
            backoff_seconds = settings.int("log.cleaner.backoff.ms") / 1000
            await asyncio.sleep(max(backoff_seconds, _MIN_BACKOFF_SECONDS))
            await self.look()

    async def look(self) -> int:
        """Compact each open log that is dirty enough; how many were."""
        cleaned = 0
        for log in list(self._logs.loaded()):
            if not self._is_ours(log) or not is_worth_it(log, ROLL_BYTES):
                continue
            facts = {"topic": log.topic, "partition": log.partition}
            try:
                cleaned += await self._clean(log)
            except CorruptBatchError as error:
                self._uncleanable.add(log)
                _log.error("a damaged log is not compacted: %s", error, extra=facts)
            except (HeadraceError, OSError) as error:
                _log.warning("compaction failed: %s", error, extra=facts)
        return cleaned

    def _is_ours(self, log: PartitionLog) -> bool:
        return (
            log.topic in INTERNAL_TOPICS
            and log.config.is_compacted
            and log not in self._uncleanable
            and log not in self._service.sync.failed
        )

    async def _clean(self, log: PartitionLog) -> bool:
        broker = self._service.broker
        cleaning = plan(log, broker.now_ms(), ROLL_BYTES)
        if cleaning is None:
            return False
        try:
            await _run(cleaning, cleaning.copy)
            if not self._is_open(log) or not cleaning.announce():
                cleaning.abandon()
                return False
            await _run(cleaning, cleaning.sync)
        except OSError:
            if self._is_open(log):
                raise
            return False  # the topic was deleted, and its directory with it
        if not self._is_open(log) or not cleaning.swap():
            cleaning.abandon()
            return False
        facts = {
            "topic": log.topic,
            "partition": log.partition,
            "bytes_before": cleaning.bytes_before,
            "bytes_after": cleaning.bytes_after,
        }
        _log.debug("compacted", extra=facts)
        return True

    def _is_open(self, log: PartitionLog) -> bool:
        """Another log may have the same name by now: a topic is deleted and made again."""
        return any(log is one for one in self._logs.loaded())


async def _run(cleaning: Cleaning, step: Callable[[], None]) -> None:
    """Run a step in a thread; when the broker stops meanwhile, it ends early and is undone."""
    running = asyncio.create_task(asyncio.to_thread(step))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        cleaning.stop()
        await asyncio.gather(running, return_exceptions=True)
        cleaning.abandon()
        raise
