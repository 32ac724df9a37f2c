"""Sending messages: a queue in memory, and a Delivery for each message.

librdkafka gathers batches and sends them in the background; a thread of ours hears what became of
each.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headrace.client.bus import Bus
from headrace.client.complaints import Complaints
from headrace.client.error_table import is_unknown
from headrace.client.errors import BusError
from headrace.client.making import ends_in_child, make_client
from headrace.client.message import Delivery, Header, Headers, Waiting

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# Every message is acknowledged by all who keep it; equal keys go to the same partition as with
# Java's client. The user's properties win.
DEFAULTS: Mapping[str, object] = {
    "partitioner": "murmur2_random",
    "client.id": "headrace",
    # Java's `delivery.timeout.ms`: after two minutes without an acknowledgement it has failed.
    "message.timeout.ms": 120_000,
}
_IN_ORDER = ("1", "2", "3", "4", "5")  # requests on their way
# What writing each message once and in order takes; who has it otherwise goes without, as in Java.
_IDEMPOTENT: Mapping[str, Callable[[str], bool]] = {
    "acks": lambda value: value in ("all", "-1"),
    "request.required.acks": lambda value: value in ("all", "-1"),
    "retries": lambda value: value != "0",
    "message.send.max.retries": lambda value: value != "0",
    "max.in.flight": lambda value: value in _IN_ORDER,
    "max.in.flight.requests.per.connection": lambda value: value in _IN_ORDER,
}
_POLL_S = 0.1  # how soon the thread notices that it is to end
_FLUSH_S = 0.05
_REPORT_S = 1.0  # for what librdkafka has reported to be heard of
_LONGEST_PAUSE_S = 0.05
_MAX_UNSEEN = 1000  # failed deliveries kept for `flush` to tell of; more are counted
_logger = logging.getLogger(__name__)


class Producer:
    """Sends messages to a bus. For any number of threads.

        with Producer(bus) as producer:
            producer.send("orders", b"one tonne of grain", key="eu-1")

    Leaving the block waits for every acknowledgement, and raises BusError if a message was not
    delivered and nobody has looked at its Delivery. After Ctrl-C it waits for nothing.
    """

    def __init__(
        self, bus: Bus | None = None, *, config: Mapping[str, object] | None = None
    ) -> None:
        """`config` is for librdkafka; the bus's own properties win over it."""
        from confluent_kafka import KafkaException
        from confluent_kafka import Producer as Raw

        self._refusal = KafkaException  # imported for each message it would cost as much as sending
        self.bus = bus or Bus()
        self._complaints = Complaints(self.bus)
        self._waiting = Waiting(self._on_report)
        self._outstanding = set[Delivery]()
        self._failed = list[Delivery]()
        self._failed_count = 0
        self._is_closed = False
        given = {**(config or {}), **self.bus.properties}
        may_repeat = any(
            name in given and not is_fine(str(given[name])) for name, is_fine in _IDEMPOTENT.items()
        )
        more = {
            **DEFAULTS,
            "enable.idempotence": not may_repeat,
            **(config or {}),
            "error_cb": self._complaints.on_error,
        }
        self._raw: Any = make_client(self.bus, Raw, more)
        self._thread = threading.Thread(target=self._serve, name="headrace-deliveries", daemon=True)
        self._waiting.reporter = self._thread
        self._thread.start()
        ends_in_child(self)

    def send(
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
        """Queue a message; its Delivery tells what became of it. Text is sent as UTF-8.

        Waits while the queue is full, at most `timeout_s`; BusError if it is full even then.
        """
        message = librdkafka_arguments(topic, value, key, headers, partition, timestamp_ms)
        if (delivery := self.offer(topic, message)) is not None:
            return delivery
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (delivery := self.offer(topic, message)) is None:
            left = _LONGEST_PAUSE_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise self.full(timeout_s)
            count = len(self._outstanding)
            self._waiting.until(
                lambda count=count: len(self._outstanding) < count,  # type: ignore[misc]
                min(left, _LONGEST_PAUSE_S),
            )
        return delivery

    def offer(self, topic: str, message: Mapping[str, object]) -> Delivery | None:
        """Queue a message unless the queue is full: None then. For `send` and its twin."""
        if self._is_closed:
            raise RuntimeError("the producer is closed, or of the process this one was forked from")
        delivery = Delivery(topic, self._waiting)
        try:
            self._outstanding.add(delivery)
            self._raw.produce(topic, on_delivery=delivery, **message)
        except BufferError:
            self._outstanding.discard(delivery)
            return None
        except self._refusal as error:  # too large, say; told as what a broker refuses is
            self._finish(delivery, self._failure(delivery, error.args[0]))
        except BaseException:
            self._outstanding.discard(delivery)
            raise
        if self._is_closed and not self._thread.is_alive():
            self._end()  # closed by another thread meanwhile: nobody would hear of it any more
        return delivery

    def full(self, timeout_s: float | None) -> BusError:
        """The error for a queue that stays full."""
        return BusError(
            None,
            f"the queue of {len(self._outstanding):,} messages is full, and {self.bus.bootstrap} "
            f"took none of them within {timeout_s:g} s; send slower, or give the property "
            "queue.buffering.max.messages or queue.buffering.max.kbytes more",
            is_passing=True,
        )

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until all that was sent before is done.

        BusError if one failed whose Delivery nobody has looked at; TimeoutError if some are still
        on their way: they go on.
        """
        self.settle(timeout_s)

    def settle(self, timeout_s: float | None, is_stopped: Callable[[], bool] = bool) -> None:
        """For `flush` and its twin, which may be cancelled meanwhile."""
        self._waiting.must_not_be_called_back()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for delivery in list(self._outstanding):
            while not delivery.is_done:
                if is_stopped():
                    return
                if deadline is not None and time.monotonic() >= deadline:
                    left = sum(not each.is_done for each in list(self._outstanding))
                    raise TimeoutError(
                        f"{left:,} messages were not acknowledged within {timeout_s:g} s"
                    )
                # It does not wait for `linger.ms`.
                if not self._raw.flush(_FLUSH_S):
                    self._give_up_unless_done(delivery)
        self._tell_of_failures()

    def close(self, timeout_s: float | None = None) -> None:
        """`flush`, then end; what is still on its way when the time is over is given up, and told.

        Does nothing the second time.
        """
        if self._is_closed:
            return
        self._waiting.must_not_be_called_back()
        self._is_closed = True
        try:
            self.flush(timeout_s)
        except TimeoutError as error:
            raise BusError(None, f"{error}, and were given up", is_passing=True) from None
        finally:
            self._end()

    def abandon(self) -> None:
        """End at once; what is on its way is given up, and its Delivery says so."""
        self._is_closed = True
        self._end()

    @property
    def waiting(self) -> int:
        """How many messages are queued or on their way."""
        return len(self._outstanding)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif isinstance(error, Exception):
            try:  # what was sent before is sent; the error on its way out is the one to tell
                self.close()
            except BusError as failure:
                _logger.warning("%s", failure)
        else:
            self.abandon()

    def end_in_child(self) -> None:
        """What is on its way is sent by the parent."""
        self._is_closed = True
        self._outstanding = set()

    def _end(self) -> None:
        if self._outstanding:
            self._raw.purge()
            self._raw.flush(_REPORT_S)
            if not self._waiting.is_called_back:
                for delivery in list(self._outstanding):
                    self._give_up_unless_done(delivery)
        if not self._waiting.is_called_back:
            self._thread.join()

    def _give_up_unless_done(self, delivery: Delivery) -> None:
        """librdkafka has no more messages: one it never got was interrupted on its way there."""
        if not self._waiting.until(lambda: delivery.is_done, _REPORT_S):
            self._finish(
                delivery, BusError(None, "interrupted before it was queued", is_passing=False)
            )

    def _serve(self) -> None:
        while not self._is_closed or self._outstanding:
            try:
                self._raw.poll(_POLL_S)
            except Exception:
                _logger.exception("librdkafka's report was not understood")

    def _on_report(self, delivery: Delivery, error: "KafkaError | None", sent: Any) -> None:
        if error is not None:
            self._finish(delivery, self._failure(delivery, error))
            return
        offset = sent.offset()
        try:
            delivery.finish(
                None,
                sent.partition(),
                offset if offset is not None and offset >= 0 else None,
                sent.timestamp()[1],
            )
        finally:  # Ctrl-C may come in a callback
            self._outstanding.discard(delivery)

    def _finish(self, delivery: Delivery, failure: BusError) -> None:
        self._failed_count += 1
        if len(self._failed) < _MAX_UNSEEN:
            self._failed.append(delivery)
        try:
            delivery.finish(failure)
        finally:
            self._outstanding.discard(delivery)

    def _failure(self, delivery: Delivery, error: "KafkaError") -> BusError:
        if error.code() in (error._PURGE_QUEUE, error._PURGE_INFLIGHT):
            return BusError(error, "given up before it was acknowledged", is_passing=False)
        if error.fatal() or error.code() == error._FATAL:
            reason = self._complaints.fatal or error.str()
            return BusError(
                error,
                f"this producer cannot go on: {reason}; make a new one",
                is_passing=False,
            )
        if is_unknown(error):
            sentence = f"there is no topic {delivery.topic}, or it has no such partition"
            return BusError(error, sentence, is_passing=False)
        if error.code() == error._MSG_TIMED_OUT and not self._complaints.is_any:
            return BusError(
                error,
                f"{self.bus.bootstrap} acknowledged no message to {delivery.topic} in time; is the "
                "topic there, and a leader for it? 'headrace topics describe' shows it",
                is_passing=True,
                is_timeout=True,
            )
        return self._complaints.failure(error, None)

    def _tell_of_failures(self) -> None:
        failed, self._failed = self._failed, []
        count, self._failed_count = self._failed_count, 0
        unseen = [each for each in failed if each.is_failure_unseen]
        count -= len(failed) - len(unseen)
        if not unseen:
            return
        first = unseen[0]
        error = first.error
        assert error is not None
        many = "a message" if count == 1 else f"{count:,} messages"
        raise BusError(
            error.reason,
            f"{many} could not be delivered; the first, to topic {first.topic}: {error}",
            is_passing=error.is_passing,
        )


def librdkafka_arguments(
    topic: str,
    value: str | bytes | None,
    key: str | bytes | None,
    headers: Headers | None,
    partition: int | None,
    timestamp_ms: int | None,
) -> dict[str, object]:
    """What librdkafka takes; TypeError or ValueError names what it cannot."""
    if not isinstance(topic, str) or not topic:
        raise ValueError(f"a topic is a name, not {topic!r}")
    message: dict[str, object] = {
        "value": value if value is None or type(value) is bytes else _bytes("value", value),
        "key": key if key is None or type(key) is bytes else _bytes("key", key),
    }
    if headers is not None:
        message["headers"] = _headers(headers)
    if partition is not None:
        if partition < 0:
            raise ValueError(f"partition {partition} is not there; leave it out for any")
        message["partition"] = partition
    if timestamp_ms is not None:
        if timestamp_ms <= 0:  # librdkafka takes 0 for now
            raise ValueError(f"timestamp_ms {timestamp_ms} is not after 1970 began")
        message["timestamp"] = timestamp_ms
    return message


def _bytes(what: str, given: object) -> bytes | None:
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode("utf-8")
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"{what} is {type(given).__name__}; text and bytes are sent, or None")


def _headers(given: Headers) -> list[Header]:
    pairs = given.items() if isinstance(given, Mapping) else given
    return [(name, _bytes(f"header {name}", value)) for name, value in pairs]
