"""A message as it lies in a topic, and the delivery of one that was sent."""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from headrace.client.errors import BusError

Header = tuple[str, bytes | None]
# Headers as a caller may write them; a name may come more than once in pairs.
Headers = Mapping[str, "str | bytes | None"] | Iterable["tuple[str, str | bytes | None]"]
_logger = logging.getLogger(__name__)


class Message(NamedTuple):
    """One message of a topic.

        with Producer(bus) as producer:
            producer.send("harvest", "grain", headers={"unit": "tonne"})
        with Consumer(bus, "harvest") as consumer:
            message = consumer.poll()[0]
        assert (message.text, message.key) == ("grain", None)
        assert message.headers == (("unit", b"tonne"),)

    `value` is None where there is none: the last message of a key that compaction lets go.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    @property
    def text(self) -> str:
        """The value as UTF-8; UnicodeDecodeError if it is none, TypeError if there is no value."""
        if self.value is None:
            raise TypeError(f"{self.topic}:{self.partition}:{self.offset} has no value")
        return self.value.decode("utf-8")


class Waiting:
    """Lets any number of threads wait for any of many deliveries."""

    __slots__ = ("_condition", "_waiters", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()  # every delivery changes under it
        self._condition = threading.Condition(self.lock)
        self._waiters = 0

    def until(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait, and return whether it is over."""
        with self._condition:
            self._waiters += 1
            try:
                return self._condition.wait_for(is_over, timeout_s)
            finally:
                self._waiters -= 1

    def wake(self) -> None:
        """Let those who wait look again; for who holds the lock."""
        if self._waiters:
            self._condition.notify_all()


class Delivery:
    """What becomes of one sent message: wait for it, await it, or have a function called.

        with Producer(bus) as producer:
            delivery = producer.send("orders", b"one tonne of grain").wait(10)
        print(delivery.partition, delivery.offset)

    `partition`, `offset` and `timestamp_ms` are known once it is done; the offset stays None where
    nobody acknowledges (acks=0).
    """

    __slots__ = (
        "_callbacks",
        "_error",
        "_is_looked_at",
        "_waiting",
        "is_done",
        "offset",
        "partition",
        "timestamp_ms",
        "topic",
    )

    def __init__(self, topic: str, waiting: Waiting) -> None:
        self.topic = topic
        self.partition: int | None = None
        self.offset: int | None = None
        self.timestamp_ms: int | None = None
        self.is_done = False
        self._waiting = waiting
        self._error: BusError | None = None
        self._callbacks: list[Callable[[Delivery], object]] | None = None
        self._is_looked_at = False

    @property
    def error(self) -> "BusError | None":
        """Why it was not delivered; None if it was, or is not done yet."""
        self._is_looked_at = self.is_done
        return self._error

    @property
    def is_failure_unseen(self) -> bool:
        """Whether it failed and nobody has asked."""
        return self._error is not None and not self._is_looked_at

    def wait(self, timeout_s: float | None = None) -> "Delivery":
        """Return itself once delivered; BusError if it was not, TimeoutError if that is open."""
        if not self.is_done and not self._waiting.until(lambda: self.is_done, timeout_s):
            raise TimeoutError(f"topic {self.topic}: no acknowledgement within {timeout_s:g} s")
        if (error := self.error) is not None:
            raise error
        return self

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Have `callback(delivery)` called once it is done, in the thread that learns of it."""
        with self._waiting.lock:
            if not self.is_done:
                self._callbacks = [*(self._callbacks or ()), callback]
                return
        self._call(callback)

    def __await__(self) -> "Generator[object, None, Delivery]":
        """As `wait`, without holding up the event loop."""
        if not self.is_done:
            loop = asyncio.get_running_loop()
            future = loop.create_future()

            def set_done() -> None:
                if not future.done():
                    future.set_result(None)

            def on_done(_delivery: Delivery) -> None:
                loop.call_soon_threadsafe(set_done)

            self.add_done_callback(on_done)
            yield from future.__await__()
        if (error := self.error) is not None:
            raise error
        return self

    def finish(
        self,
        error: "BusError | None",
        partition: int | None = None,
        offset: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """For the producer: it is done."""
        self.partition, self.offset, self.timestamp_ms = partition, offset, timestamp_ms
        with self._waiting.lock:
            self._error = error
            self.is_done = True
            callbacks, self._callbacks = self._callbacks, None
            self._waiting.wake()
        for each in callbacks or ():
            self._call(each)

    def _call(self, callback: "Callable[[Delivery], object]") -> None:
        try:
            callback(self)
        except Exception:
            _logger.exception("a callback of a delivery to %s failed", self.topic)

    def __repr__(self) -> str:
        if not self.is_done:
            return f"<Delivery to {self.topic}, on its way>"
        if self._error is not None:
            return f"<Delivery to {self.topic}, failed: {self._error}>"
        return f"<Delivery to {self.topic}:{self.partition}:{self.offset}>"
