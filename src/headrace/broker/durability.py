"""acks=all: an fdatasync off the event loop, one call for all who wait for the same log."""

import asyncio
import errno
import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from headrace.log.checkpoints import NO_DESCRIPTOR, try_note_failed_syncs
from headrace.log.errors import StorageWriteError
from headrace.log.files import NamedFile, OpenFile
from headrace.log.partition_log import PartitionLog
from headrace.metrics import Metrics

_log = logging.getLogger(__name__)

# Syncs of different files overlap in the disk's queue; more threads than this gained nothing.
SYNC_THREADS = 4
# Who waited for a sync is answered in ten microseconds; syncs of many logs may end in one turn.
_TOLD_AT_ONCE = 64
# How long to wait for a descriptor.
_PASSING_PAUSE_SECONDS = 0.2

Callback = Callable[[StorageWriteError | None], None]


class _SyncJob:
    __slots__ = ("callbacks", "error", "files", "log", "offset", "seconds")

    def __init__(
        self,
        log: PartitionLog,
        files: list[OpenFile | NamedFile],
        offset: int,
        callbacks: list[Callback],
    ) -> None:
        self.log, self.files, self.offset, self.callbacks = log, files, offset, callbacks
        self.error: OSError | None = None
        self.seconds = 0.0


class DiskSync:
    """Owned by the event-loop thread; its worker threads see nothing but files.

    A log whose sync failed takes no more appends until a restart has read it
    anew: the kernel may have dropped the pages, so trying again proves nothing.
    Only a failed sync does that; a passing want of descriptors is waited out.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, metrics: Metrics) -> None:
        self._loop = loop
        self._metrics = metrics
        self._jobs: SimpleQueue[_SyncJob | None] = SimpleQueue()
        self._waiting: dict[PartitionLog, list[Callback]] = {}
        self._running: set[PartitionLog] = set()
        self._threads: list[threading.Thread] = []
        self._is_stopped = False
        self._telling = 0  # syncs that are done and not yet told to all
        self.failed: dict[PartitionLog, StorageWriteError] = {}

    @property
    def is_idle(self) -> bool:
        """Nobody waits and nothing runs."""
        return not self._waiting and not self._running and not self._telling

    def wait(self, log: PartitionLog, callback: Callback) -> None:
        """Call back when all that is committed to `log` now is on disk, or cannot be."""
        if log.sync_failure is not None:
            # Another sync would succeed, and prove nothing.
            callback(log.sync_failure)
            return
        callbacks = self._waiting.get(log)
        if callbacks is None:
            self._waiting[log] = [callback]
            if log not in self._running:
                self._start(log)
        else:
            callbacks.append(callback)

    def _start(self, log: PartitionLog) -> None:
        callbacks = self._waiting.pop(log)
        if self._is_stopped:
            return  # those who wait are gone, and closing the log syncs it
        files, offset = log.unsynced()
        self._running.add(log)
        if len(self._threads) < min(SYNC_THREADS, len(self._running)):
            thread = threading.Thread(
                target=self._work, name=f"sync-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._jobs.put(_SyncJob(log, files, offset, callbacks))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            started = time.perf_counter()
            try:
                for file in job.files:
                    file.sync()
            except Exception as error:  # whatever it was, those who wait must hear of it
                job.error = error if isinstance(error, OSError) else OSError(errno.EIO, str(error))
                try_note_failed_syncs([job.log.directory], job.error)
            job.seconds = time.perf_counter() - started
            try:
                self._loop.call_soon_threadsafe(self._done, job)
            except RuntimeError:  # the loop was closed under a broker that was not drained
                return

    def _done(self, job: _SyncJob) -> None:
        log = job.log
        self._metrics.sync_seconds.observe(job.seconds)
        if job.error is not None and job.error.errno in NO_DESCRIPTOR:
            _log.warning("no descriptor to sync %s by; trying again: %s", log.directory, job.error)
            self._waiting[log] = job.callbacks + self._waiting.get(log, [])
            self._loop.call_later(_PASSING_PAUSE_SECONDS, self._start, log)
            return
        self._running.discard(log)
        if job.error is not None:
            self._fail(log, job.error, job.callbacks + self._waiting.pop(log, []))
            return
        log.mark_synced(job.offset)
        if log in self._waiting:
            self._start(log)
        self._tell(job.callbacks, 0)

    def _tell(self, callbacks: list[Callback], start: int) -> None:
        """Tell those who waited, thousands perhaps, a few in each turn of the loop."""
        end = start + _TOLD_AT_ONCE
        if end < len(callbacks):
            if not start:
                self._telling += 1
            self._loop.call_soon(self._tell, callbacks, end)
        elif start:
            self._telling -= 1
        for callback in callbacks[start:end]:
            callback(None)

    def _fail(self, log: PartitionLog, error: OSError, callbacks: list[Callback]) -> None:
        failure = StorageWriteError(log.directory, error)
        _log.error("sync failed; the partition takes no more messages until a restart: %s", failure)
        self.failed[log] = log.sync_failure = failure
        for callback in callbacks:
            callback(failure)

    def stop(self) -> None:
        """End the worker threads; what they are about is finished."""
        self._is_stopped = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
