"""One change of the metadata after another, as Kafka's controller has one thread for them.

What a change writes is written in a worker thread, for a commit waits for the disk; what it checks
and what it puts into memory belongs to the event loop. A change that has begun is carried through,
whatever becomes of the client that asked for it, and a broker that stops waits for it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class MetadataChanges:
    """The line in which changes wait for each other. Event-loop thread only."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        # Its own thread: a commit must not wait until those that read logs are done.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="changes")
        self._tasks: set[asyncio.Task[Any]] = set()

    async def make(self, change: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """Carry out `change` when those before it are done; not to be called from a change."""
        task = asyncio.get_running_loop().create_task(self._take_turn(change))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Who waits may be cancelled, with its connection or in a drain; the change may not.
        return await asyncio.shield(task)

    async def _take_turn(self, change: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        async with self._turn:
            return await change()

    async def write(self, step: Callable[[], _Result]) -> _Result:
        """Run what waits for the disk in the worker thread; for use by a change."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, step)

    def stop(self) -> None:
        """End the worker thread; call when drained."""
        self._worker.shutdown()

    async def drain(self) -> None:
        """Return when all changes that were asked for are done."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
