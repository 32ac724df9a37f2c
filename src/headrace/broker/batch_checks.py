"""Where a producer's batch is checked: at once on the event loop, or aside when that takes long.

Small batches are checked where they lie. A large one, or one whose records decompress to much,
goes to a worker thread, where neither decompression nor the scanner holds the interpreter's lock.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from headrace.config import LogConfig
from headrace.records.batch import ATTRIBUTES_LOW_AT, CODEC_MASK, HEADER_SIZE, BatchHeader
from headrace.records.codecs import Allowance
from headrace.records.errors import DecompressedTooLargeError
from headrace.records.validation import check_for_append

# Plain bytes up to here are checked at once: a millisecond at the most.
MAX_PLAIN_BYTES = 1024 * 1024
# What comes of compressed ones may be this much: a few milliseconds with the slowest codec.
MAX_INFLATED_BYTES = 1024 * 1024
# All compressed batches of one turn of the loop together; what comes later goes aside.
TURN_SECONDS = 0.005
# A second bomb need not wait for the first; with more, the cores would be gone. Each holds at
# most MAX_DECOMPRESSED_BYTES, so that is twice that for all clients together.
THREADS = 2


class BatchChecks:
    """Event-loop thread only; what it runs aside sees bytes and a config and nothing else."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._spent_seconds = 0.0
        self._threads: ThreadPoolExecutor | None = None

    def now(
        self, batch: memoryview, config: LogConfig, now_ms: int, takes_zstd: bool
    ) -> BatchHeader | None:
        """The header of a batch that may be appended; None when that must be found out aside."""
        size = len(batch)
        if size > HEADER_SIZE and batch[ATTRIBUTES_LOW_AT] & CODEC_MASK:
            return self._inflate_now(batch, config, now_ms, takes_zstd)
        if size > MAX_PLAIN_BYTES:
            return None
        return check_for_append(batch, config, now_ms, takes_zstd)

    def _inflate_now(
        self, batch: memoryview, config: LogConfig, now_ms: int, takes_zstd: bool
    ) -> BatchHeader | None:
        if self._spent_seconds >= TURN_SECONDS or len(batch) > MAX_INFLATED_BYTES:
            return None
        started = perf_counter()
        try:
            allowance = Allowance(MAX_INFLATED_BYTES)
            return check_for_append(batch, config, now_ms, takes_zstd, allowance)
        except DecompressedTooLargeError:
            return None
        finally:
            if not self._spent_seconds:
                self._loop.call_soon(self._next_turn)
            self._spent_seconds += perf_counter() - started

    def _next_turn(self) -> None:
        self._spent_seconds = 0.0

    async def aside(
        self,
        batch: memoryview,
        config: LogConfig,
        now_ms: int,
        takes_zstd: bool,
        allowance: Allowance,
    ) -> BatchHeader:
        """The header of a batch that may be appended, or its RecordError."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="check")
        return await self._loop.run_in_executor(
            self._threads, check_for_append, batch, config, now_ms, takes_zstd, allowance
        )

    def stop(self) -> None:
        """End the worker threads."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
