"""The clients for an event loop: what waits in `Admin`, `Producer` and `Consumer` is awaited here.

Each twin has the client itself and calls it in a thread of its own, one call after the other: what
there is to decide is decided there.
"""

import asyncio
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from headrace.client.admin import DEFAULT_TIMEOUT_S, Admin
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
_Client = TypeVar("_Client")


class _Twin(Generic[_Client]):
    """A client, and the one thread that calls it: librdkafka's rebalances come where one polls."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._thread = ThreadPoolExecutor(1, f"headrace-{type(client).__name__.lower()}")

    async def close(self) -> None:
        """End the client and its thread."""
        raise NotImplementedError

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


def _awaited(
    method: Callable[Concatenate[_Client, _P], _Answer],
) -> Callable[Concatenate[_Twin[_Client], _P], Coroutine[Any, Any, _Answer]]:
    """A client's method as its twin has it: the same arguments, the same answer, awaited."""

    @functools.wraps(method)
    async def call(twin: _Twin[_Client], /, *args: _P.args, **kwargs: _P.kwargs) -> _Answer:
        return await twin._in_thread(method, twin._client, *args, **kwargs)

    return call


class AsyncAdmin(_Twin[Admin]):
    """`Admin` for an event loop.

        async with AsyncAdmin(bus) as admin:
            await admin.ensure_topic("orders", partitions=4)
            assert len(await admin.end_offsets([("orders", 0), ("orders", 3)])) == 2

    Questions are put one after the other, for any number of tasks.
    """

    def __init__(
        self,
        bus: Bus | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """As `Admin`."""
        super().__init__(Admin(bus or Bus(), timeout_s=timeout_s, config=config))

    metadata = _awaited(Admin.metadata)
    describe_cluster = _awaited(Admin.describe_cluster)
    cluster_id = _awaited(Admin.cluster_id)
    topic_ids = _awaited(Admin.topic_ids)
    describe_topics = _awaited(Admin.describe_topics)
    create_topic = _awaited(Admin.create_topic)
    ensure_topic = _awaited(Admin.ensure_topic)
    grow_topic = _awaited(Admin.grow_topic)
    delete_topics = _awaited(Admin.delete_topics)
    delete_records = _awaited(Admin.delete_records)
    configs = _awaited(Admin.configs)
    alter_configs = _awaited(Admin.alter_configs)
    oldest_offsets = _awaited(Admin.oldest_offsets)
    end_offsets = _awaited(Admin.end_offsets)
    offsets_at = _awaited(Admin.offsets_at)
    api_versions = _awaited(Admin.api_versions)
    log_sizes = _awaited(Admin.log_sizes)
    list_groups = _awaited(Admin.list_groups)
    describe_group = _awaited(Admin.describe_group)
    group_offsets = _awaited(Admin.group_offsets)
    groups_with_offsets = _awaited(Admin.groups_with_offsets)
    set_group_offsets = _awaited(Admin.set_group_offsets)
    delete_groups = _awaited(Admin.delete_groups)

    async def close(self) -> None:
        """End its thread, after what was asked before."""
        await asyncio.to_thread(self._thread.shutdown)


async def _unless_cancelled(
    waiting: Coroutine[Any, Any, None], give_up: Callable[[], object]
) -> None:
    """Await what waits in a thread. A thread cannot be cancelled: `give_up` ends its wait."""
    task = asyncio.ensure_future(waiting)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.to_thread(give_up)
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # of who was cancelled nobody asks
        raise


class AsyncProducer:
    """`Producer` for an event loop, and any number of its tasks.

        async with AsyncProducer(bus) as producer:
            delivery = await producer.send("orders", b"one tonne of grain")
            print((await delivery).offset)

    Sending waits only while the queue is full; the Delivery is what to await.
    """

    def __init__(
        self, bus: Bus | None = None, *, config: Mapping[str, object] | None = None
    ) -> None:
        """As `Producer`."""
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
        is_cancelled = threading.Event()
        settling = asyncio.to_thread(self._producer.settle, timeout_s, is_cancelled.is_set)
        await _unless_cancelled(settling, is_cancelled.set)

    async def close(self, timeout_s: float | None = None) -> None:
        """As `Producer.close`; cancelled, it gives up what is on its way."""
        closing = asyncio.to_thread(self._producer.close, timeout_s)
        await _unless_cancelled(closing, self._producer.abandon)

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
        leaving = asyncio.to_thread(self._producer.__exit__, kind, error, traceback)
        await _unless_cancelled(leaving, self._producer.abandon)


class AsyncConsumer(_Twin[Consumer]):
    """`Consumer` for an event loop; owned by one task.

        async with AsyncConsumer(bus, "orders", group="billing") as consumer:
            async for message in consumer:
                print(message.text)
                break

    Cancelling a poll loses nothing: the next one returns what it had found. Other questions wait
    until a poll that is under way has returned.
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
        """As `Consumer`."""
        super().__init__(
            Consumer(bus, topics, group=group, start=start, timeout_s=timeout_s, config=config)
        )
        self._is_filling = False

    async def poll(
        self, timeout_s: float | None = None, max_messages: int = MAX_MESSAGES
    ) -> list[Message]:
        """As `Consumer.poll`."""
        await self._fill(timeout_s, max_messages)
        self._client.was_interrupted()
        return self._client.take(max_messages)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """As `Consumer.__iter__`."""
        while not self._client.is_closed:
            await self._fill(None)
            if self._client.was_interrupted():
                return
            for message in self._client.take(1):
                yield message

    def interrupt(self) -> None:
        """As `Consumer.interrupt`."""
        self._client.interrupt()

    commit = _awaited(Consumer.commit)
    committed = _awaited(Consumer.committed)
    seek = _awaited(Consumer.seek)
    position = _awaited(Consumer.position)
    lag = _awaited(Consumer.lag)

    def assignment(self) -> list[Partition]:
        """As `Consumer.assignment`."""
        return self._client.assignment()

    async def close(self) -> None:
        """As `Consumer.close`; a poll that waits returns first."""
        self._client.interrupt()
        if not self._client.is_closed:
            try:
                await self._in_thread(self._client.close)
            finally:
                self._thread.shutdown(wait=False)

    async def _fill(self, timeout_s: float | None, max_messages: int = MAX_MESSAGES) -> None:
        if self._is_filling:
            raise RuntimeError("another task is polling this consumer; give each its own")
        if self._client.has_more(max_messages):
            return  # without a thread
        is_cancelled = threading.Event()
        loop = asyncio.get_running_loop()

        def is_stopped() -> bool:  # or the loop, or the program: its end waits for the thread
            is_over = loop.is_closed() or not threading.main_thread().is_alive()
            return is_cancelled.is_set() or is_over

        filling = asyncio.wrap_future(
            self._thread.submit(self._client.fill, timeout_s, max_messages, is_stopped)
        )
        self._is_filling = True
        filling.add_done_callback(self._filled)
        try:
            await asyncio.shield(filling)
        except asyncio.CancelledError:
            is_cancelled.set()
            await asyncio.wait([filling])
            raise

    def _filled(self, filling: "asyncio.Future[None]") -> None:
        self._is_filling = False
        if not filling.cancelled():
            filling.exception()  # of who was cancelled nobody asks
