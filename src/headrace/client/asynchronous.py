"""The clients for an event loop: what waits in `Producer` and `Consumer` is awaited here."""

import asyncio
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from headrace.client.admin import DEFAULT_TIMEOUT_S
from headrace.client.bus import Bus
from headrace.client.consumer import MAX_MESSAGES, Consumer, Start
from headrace.client.librdkafka import Partition
from headrace.client.message import Delivery, Headers, Message
from headrace.client.positions import OLDEST
from headrace.client.producer import Producer, librdkafka_arguments

_PAUSE_S = 0.001  # before the queue is asked again whether it has room
_LONGEST_PAUSE_S = 0.05
_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")


class AsyncProducer:
    """`Producer` for an event loop: what waits there is awaited here.

    async with AsyncProducer(bus) as producer:
        delivery = await producer.send("orders", b"...")
        await delivery
    """

    def __init__(
        self, bus: Bus | None = None, *, config: Mapping[str, object] | None = None
    ) -> None:
        self._producer = Producer(bus, config=config)

    async def send(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        *,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
    ) -> Delivery:
        """As `Producer.send`: returns when it is queued; await the Delivery for the rest."""
        message = librdkafka_arguments(topic, value, key, headers, partition, timestamp_ms)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pause = _PAUSE_S
        while (delivery := self._producer.offer(topic, message)) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise self._producer.full(timeout_s)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return delivery

    async def flush(self, timeout_s: float | None = None) -> None:
        """As `Producer.flush`."""
        await asyncio.to_thread(self._producer.flush, timeout_s)

    async def close(self, timeout_s: float | None = None) -> None:
        """As `Producer.close`."""
        await asyncio.to_thread(self._producer.close, timeout_s)

    @property
    def waiting(self) -> int:
        """How many messages are queued or on their way."""
        return self._producer.waiting

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._producer.__exit__, kind, error, traceback)


class AsyncConsumer:
    """`Consumer` for an event loop.

        async with AsyncConsumer(bus, "orders", group="billing") as consumer:
            async for message in consumer:
                ...

    Cancelling a poll loses nothing: the next one returns what it had found.
    """

    def __init__(
        self,
        bus: Bus | None,
        topics: str | Sequence[str],
        *,
        group: str | None = None,
        start: Start = OLDEST,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self._consumer = Consumer(
            bus, topics, group=group, start=start, timeout_s=timeout_s, config=config
        )
        # librdkafka's rebalances come in the thread that polls: all calls are in this one.
        self._thread = ThreadPoolExecutor(1, "headrace-consumer")

    async def poll(
        self, timeout_s: float | None = None, max_messages: int = MAX_MESSAGES
    ) -> list[Message]:
        """As `Consumer.poll`."""
        await self._fill(timeout_s, max_messages)
        self._consumer.was_interrupted()
        return self._consumer.take(max_messages)

    async def _fill(self, timeout_s: float | None, max_messages: int = MAX_MESSAGES) -> None:
        is_cancelled = threading.Event()
        filling = asyncio.wrap_future(
            self._thread.submit(self._consumer.fill, timeout_s, max_messages, is_cancelled.is_set)
        )
        try:
            await asyncio.shield(filling)
        except asyncio.CancelledError:
            is_cancelled.set()
            await asyncio.wait([filling])
            raise

    async def __aiter__(self) -> AsyncIterator[Message]:
        """As `Consumer.__iter__`."""
        while True:
            await self._fill(None)
            if self._consumer.was_interrupted():
                return
            for message in self._consumer.take(1):
                yield message

    def interrupt(self) -> None:
        """As `Consumer.interrupt`."""
        self._consumer.interrupt()

    async def commit(self) -> None:
        """As `Consumer.commit`."""
        await self._in_thread(self._consumer.commit)

    async def committed(self) -> dict[Partition, int]:
        """As `Consumer.committed`."""
        return await self._in_thread(self._consumer.committed)

    def assignment(self) -> list[Partition]:
        """As `Consumer.assignment`."""
        return self._consumer.assignment()

    async def seek(self, topic: str, partition: int, to: Start) -> None:
        """As `Consumer.seek`."""
        await self._in_thread(self._consumer.seek, topic, partition, to)

    async def position(self, topic: str, partition: int) -> int | None:
        """As `Consumer.position`."""
        return await self._in_thread(self._consumer.position, topic, partition)

    async def lag(self) -> dict[Partition, int]:
        """As `Consumer.lag`."""
        return await self._in_thread(self._consumer.lag)

    async def close(self) -> None:
        """As `Consumer.close`."""
        self._consumer.interrupt()
        try:
            await self._in_thread(self._consumer.close)
        finally:
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _in_thread(
        self, function: Callable[_P, _Answer], *args: _P.args, **kwargs: _P.kwargs
    ) -> _Answer:
        call = functools.partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)
