"""Group commit: what arrived in one turn of the event loop is written in one go per log.

Requests stage batches as views into their connection's receive buffer, borrowed
until they are written. A flush writes them, gives the borrowed blocks back, then
lets every produce answer. It runs at the end of the turn, or at once when a
connection needs its buffer again, or when there is nobody to share a write with:
a lone producer's answer need not wait.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from headrace.broker.receive_buffer import Block
from headrace.broker.waiting_fetches import WaitingFetches
from headrace.log.errors import StorageWriteError
from headrace.log.partition_log import PartitionLog
from headrace.metrics import Metrics

_log = logging.getLogger(__name__)

Failures = dict[PartitionLog, StorageWriteError]


class Staged(Protocol):
    """A produce request whose batches wait to be written."""

    def on_commit(self, failures: Failures) -> None:
        """All batches staged so far are in their files, except in the logs that failed."""


class Committer:
    """Event-loop thread only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        waiting: WaitingFetches,
        metrics: Metrics,
        *,
        is_checking: bool = False,
    ) -> None:
        self._loop = loop
        self._now_ms = now_ms
        self._waiting = waiting
        self._metrics = metrics
        self._is_checking = is_checking
        self._logs: dict[PartitionLog, int] = {}
        self._borrowed: list[Block] = []
        self._staged: list[Staged] = []
        self._turn_requests = 0
        self._last_turn_requests = 0

    def stage(self, log: PartitionLog, byte_count: int, block: Block) -> None:
        """Note that `log` has a staged batch of `byte_count` bytes, which lies in `block`."""
        logs = self._logs
        logs[log] = logs.get(log, 0) + byte_count
        block.loans += 1
        self._borrowed.append(block)

    def add(self, staged: Staged) -> None:
        """Call `staged` after the next flush, and see that there is one."""
        self._staged.append(staged)
        self._turn_requests += 1
        if self._turn_requests == 1:
            self._loop.call_soon(self._turn_ends)

    def read_ends(self) -> None:
        """A connection has served what it read; flush if others are unlikely to join."""
        if self._turn_requests == 1 and self._last_turn_requests <= 1:
            self.flush()

    def _turn_ends(self) -> None:
        self._last_turn_requests = self._turn_requests
        self._turn_requests = 0
        self.flush()

    def flush(self) -> None:
        """Write all that is staged, answer, and wake the fetches that waited for it."""
        if not self._staged and not self._logs:
            return
        logs, self._logs = self._logs, {}
        staged, self._staged = self._staged, []
        borrowed, self._borrowed = self._borrowed, []
        now_ms = self._now_ms()
        failures: Failures = {}
        for log in logs:
            try:
                if self._is_checking:
                    log.check_staged()
                log.commit(now_ms)
            except StorageWriteError as error:
                failures[log] = error
                self._metrics.append_failures.value += 1
                _log.error("append to %s-%s failed: %s", log.topic, log.partition, error)
        for block in borrowed:
            block.loans -= 1
        self._metrics.commits.value += len(logs)
        self._metrics.commit_batches.value += len(staged)
        for one in staged:
            one.on_commit(failures)
        for log, byte_count in logs.items():
            if log not in failures:
                self._waiting.notify(log, byte_count)
