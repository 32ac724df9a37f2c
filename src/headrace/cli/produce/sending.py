"""Messages on their way to the broker, and the account of them.

Invariant: sent = acknowledged + failed + waiting. librdkafka reports failures only, which saves
a call for each message: what it no longer holds and has not reported is acknowledged.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from headrace.cli.produce.messages import BadLineError, ParsedMessage
from headrace.client.librdkafka import error_type

# Long enough to keep librdkafka busy, and all the memory that waiting messages may take.
QUEUE = {
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 64 * 1024,
    "delivery.report.only.error": True,
}
_WAIT_S = 0.1


class ProducerGoneError(Exception):
    """The producer takes no more messages; `str` says why."""


class Sender:
    """Sends to one topic. `make_producer` gets the callback that librdkafka reports to.

    `is_hurried` says whether to stop waiting for the broker.
    """

    def __init__(
        self,
        make_producer: Callable[[Callable[..., None]], Any],
        topic: str,
        is_hurried: Callable[[], bool] = lambda: False,
    ) -> None:
        self._topic = topic
        self._is_hurried = is_hurried
        self._refused = error_type()
        self.producer = make_producer(self._on_failure)
        self._produce = self.producer.produce
        self.sent = 0
        self.sent_bytes = 0
        self.failures = Counter[str]()
        self._is_given_up = False

    @property
    def failed(self) -> int:
        """How many messages the broker refused or never acknowledged."""
        return self.failures.total()

    @property
    def waiting(self) -> int:
        """How many messages have neither been acknowledged nor failed."""
        return 0 if self._is_given_up else len(self.producer)

    @property
    def acknowledged(self) -> int:
        """How many messages the broker has."""
        return self.sent - self.failed - self.waiting

    def send(self, message: ParsedMessage) -> None:
        """Queue a message, waiting for room; BadLineError when it can never be sent."""
        value, key, headers, timestamp_ms, partition = message
        while True:
            try:
                if headers or timestamp_ms:
                    self._produce(
                        self._topic, value, key, partition, timestamp=timestamp_ms, headers=headers
                    )
                else:  # arguments by name take librdkafka's binding nearly as long as the rest
                    self._produce(self._topic, value, key, partition)
            except BufferError:
                self.producer.poll(_WAIT_S)
                if self._is_hurried():
                    raise ProducerGoneError(
                        "given up, neither this nor what follows was sent"
                    ) from None
            except self._refused as error:
                raise _refusal(error.args[0]) from error
            else:
                break
        self.sent += 1
        self.sent_bytes += (len(value) if value else 0) + (len(key) if key else 0)

    def poll(self) -> None:
        """Take in what librdkafka has to report."""
        self.producer.poll(0)

    def finish(self, on_wait: Callable[[], None]) -> None:
        """Wait until nothing is on its way, or until hurried; what still waits then has failed."""
        while self.producer.flush(_WAIT_S):
            on_wait()
            if self._is_hurried():
                self.failures["given up before it was acknowledged"] += self.waiting
                self._is_given_up = True
                self.producer.purge()
                return

    def _on_failure(self, error: Any, _message: object) -> None:
        if error is not None and error.name() not in ("_PURGE_QUEUE", "_PURGE_INFLIGHT"):
            self.failures[error.str()] += 1


def _refusal(error: Any) -> Exception:
    if error.fatal() or error.name() == "_FATAL":
        return ProducerGoneError(f"{error.str()}; neither this nor what follows was sent")
    return BadLineError(error.str())
