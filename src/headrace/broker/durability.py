"""acks=all: an fdatasync off the event loop, one call for all who wait for the same log."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from headrace.errors import StorageWriteError
from headrace.log.files import OpenFile
from headrace.log.partition_log import PartitionLog
from headrace.metrics import Metrics

_log = logging.getLogger(__name__)

# Syncs of different files overlap in the disk's queue; more threads than this gained nothing.
SYNC_THREADS = 4

Callback = Callable[[StorageWriteError | None], None]


class _Job:
    __slots__ = ("callbacks", "error", "files", "log", "offset", "seconds")

    def __init__(
        self, log: PartitionLog, files: list[OpenFile], offset: int, callbacks: list[Callback]
    ) -> None:
        self.log, self.files, self.offset, self.callbacks = log, files, offset, callbacks
        self.error: OSError | None = None
        self.seconds = 0.0


class DiskSync:
    """Owned by the event-loop thread; its worker threads see nothing but file descriptors.

    A log whose sync failed takes no more appends until a restart has read it
    anew: the kernel may have dropped the pages, so trying again proves nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, metrics: Metrics) -> None:
        self._loop = loop
        self._metrics = metrics
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._waiting: dict[PartitionLog, list[Callback]] = {}
        self._running: set[PartitionLog] = set()
        self._threads: list[threading.Thread] = []
        self.failed: dict[PartitionLog, StorageWriteError] = {}

    @property
    def is_idle(self) -> bool:
        """Nobody waits and nothing runs."""
        return not self._waiting and not self._running

    def wait(self, log: PartitionLog, callback: Callback) -> None:
        """Call back when all that is committed to `log` now is on disk, or cannot be."""
        callbacks = self._waiting.get(log)
        if callbacks is None:
            self._waiting[log] = [callback]
            if log not in self._running:
                self._start(log)
        else:
            callbacks.append(callback)

    def _start(self, log: PartitionLog) -> None:
        callbacks = self._waiting.pop(log)
        try:
            files, offset = log.unsynced()
        except OSError as error:
            self._fail(log, error, callbacks)
            return
        self._running.add(log)
        if len(self._threads) < min(SYNC_THREADS, len(self._running)):
            thread = threading.Thread(
                target=self._work, name=f"sync-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._jobs.put(_Job(log, files, offset, callbacks))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            started = time.perf_counter()
            try:
                for file in job.files:
                    os.fdatasync(file.fd)
            except OSError as error:
                job.error = error
            job.seconds = time.perf_counter() - started
            try:
                self._loop.call_soon_threadsafe(self._done, job)
            except RuntimeError:  # the loop was closed under a broker that was not drained
                return

    def _done(self, job: _Job) -> None:
        log = job.log
        self._running.discard(log)
        self._metrics.sync_seconds.observe(job.seconds)
        if job.error is not None:
            self._fail(log, job.error, job.callbacks + self._waiting.pop(log, []))
            return
        log.mark_synced(job.offset)
        if log in self._waiting:
            self._start(log)
        for callback in job.callbacks:
            callback(None)

    def _fail(self, log: PartitionLog, error: OSError, callbacks: list[Callback]) -> None:
        failure = StorageWriteError(log.directory, error)
        _log.error("sync failed; the partition takes no more messages until a restart: %s", failure)
        self.failed[log] = failure
        for callback in callbacks:
            callback(failure)

    def stop(self) -> None:
        """End the worker threads; call when idle."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
