"""Reading from the disk off the event loop: a few threads that see file descriptors only."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from headrace.log.verifying import Preparation

# Readers of different files overlap in the disk's queue; one slow disk must not hold up all.
READ_THREADS = 4

Done = Callable[[Any, Exception | None], None]


class _ReadJob:
    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[], Any], done: Done) -> None:
        self.work, self.done = work, done
        self.result: Any = None
        self.error: Exception | None = None


class ReadThreads:
    """Owned by the event-loop thread. Threads start when there is work for them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[_ReadJob | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._running = 0

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        """Run `work` in a thread, then `done(result, error)` on the loop."""
        self._running += 1
        if len(self._threads) < min(READ_THREADS, self._running):
            thread = threading.Thread(
                target=self._work, name=f"read-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._jobs.put(_ReadJob(work, done))

    async def carry_out(self, preparation: Preparation | None) -> None:
        """Run a preparation and what follows from it; OSError when the disk fails."""
        while preparation is not None:
            future: asyncio.Future[Any] = self._loop.create_future()

            def settle(
                result: Any, error: Exception | None, future: asyncio.Future[Any] = future
            ) -> None:
                if future.done():
                    return  # the client is gone
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(result)

            self.submit(preparation.run, settle)
            preparation = preparation.apply(await future)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job.result = job.work()
            except Exception as error:  # whoever waits is told; the thread stays
                job.error = error
            try:
                self._loop.call_soon_threadsafe(self._finished, job)
            except RuntimeError:  # the loop was closed under a broker that was not drained
                return

    def _finished(self, job: _ReadJob) -> None:
        self._running -= 1
        job.done(job.result, job.error)

    def stop(self) -> None:
        """End the threads after what they are at; nobody may wait for more."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
