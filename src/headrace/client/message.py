"""A message as it lies in a topic, and the delivery of one that was sent."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

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

    __slots__ = ("_condition", "_waiters", "calling", "lock", "on_report", "reporter")

    def __init__(self, on_report: "Callable[[Delivery, KafkaError | None, Any], object]") -> None:
        self.on_report = on_report  # the producer's, for what librdkafka says of a delivery
        self.reporter: threading.Thread | None = None  # in which it says so, but for a flush
        self.calling = set[int]()  # threads that are within a callback
        self.lock = threading.Lock()
        self._condition = threading.Condition(self.lock)
        self._waiters = 0

    @property
    def is_any(self) -> bool:
        """Whether anybody waits; who begins to later looks first whether it is over."""
        return self._waiters > 0

    @property
    def is_called_back(self) -> bool:
        """Whether this is within a callback: until it returns no other delivery is heard of."""
        return threading.current_thread() is self.reporter or threading.get_ident() in self.calling

    def must_not_be_called_back(self) -> None:
        """RuntimeError for a callback that would wait for ever."""
        if self.is_called_back:
            raise RuntimeError(
                "a callback cannot wait for a delivery, or for room in the queue: before it "
                "returns no other is heard of"
            )

    def until(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait, and return whether it is over."""
        self.must_not_be_called_back()
        with self._condition:
            self._waiters += 1
            try:
                return self._condition.wait_for(is_over, timeout_s)
            finally:
                self._waiters -= 1

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._condition:
            self._condition.notify_all()


class Delivery:
    """What becomes of one sent message: wait for it, await it, or have a function called.

        with Producer(bus) as producer:
            delivery = producer.send("orders", b"one tonne of grain").wait(10)
        print(delivery.partition, delivery.offset)

    `partition`, `offset` and `timestamp_ms` are known once it is done; the offset stays None where
    nobody acknowledges (acks=0).
    """

    # Here and not in the constructor: there are many of them, and most change once.
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    is_done = False
    _error: "BusError | None" = None
    _callbacks: "list[Callable[[Delivery], object]] | None" = None
    _is_looked_at = False

    def __init__(self, topic: str, waiting: Waiting) -> None:
        self.topic = topic
        self._waiting = waiting

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
            self._callbacks = [*(self._callbacks or ()), callback]
        if self.is_done:  # asked for after they are put: `finish` looks in the other order
            self._call_back()

    def __call__(self, error: "KafkaError | None", sent: Any) -> None:
        """For librdkafka: a function of its own for each would cost as much again."""
        self._waiting.on_report(self, error, sent)

    def __await__(self) -> "Generator[object, None, Delivery]":
        """As `wait`, without holding up the event loop."""
        if not self.is_done:
            loop = asyncio.get_running_loop()
            future = loop.create_future()

            def set_done() -> None:
                if not future.done():
                    future.set_result(None)

            def on_done(_delivery: Delivery) -> None:
                with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
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
        if error is not None:
            self._error = error
        self.is_done = True
        if self._waiting.is_any:
            self._waiting.wake()
        if self._callbacks is not None:
            self._call_back()

    def _call_back(self) -> None:
        with self._waiting.lock:
            callbacks, self._callbacks = self._callbacks, None
        if not callbacks:
            return
        calling, ident = self._waiting.calling, threading.get_ident()
        is_outermost = ident not in calling
        calling.add(ident)
        try:
            for each in callbacks:
                self._call(each)
        finally:
            if is_outermost:
                calling.discard(ident)

    def _call(self, callback: "Callable[[Delivery], object]") -> None:
        try:
            callback(self)
        except BaseException as error:
            # Nobody hears what comes out of the reporter's thread, and it has to go on: not even
            # `sys.exit`, or the CancelledError of a future, ends it. Ctrl-C is the main thread's.
            is_reporter = threading.current_thread() is self._waiting.reporter
            if not isinstance(error, Exception) and not is_reporter:
                raise
            _logger.exception("a callback of a delivery to %s failed", self.topic)

    def __repr__(self) -> str:
        if not self.is_done:
            return f"<Delivery to {self.topic}, on its way>"
        if self._error is not None:
            return f"<Delivery to {self.topic}, failed: {self._error}>"
        return f"<Delivery to {self.topic}:{self.partition}:{self.offset}>"
