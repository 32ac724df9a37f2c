"""One of the two buses: its clients, and questions asked again while nobody answers.

Until the copy runs a question has `timeout_s`; then `is_patient`, and only a stop ends the wait: a
broker that restarts ends no mirror.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.client.error_table import is_passing, is_silence, is_unknown
from headrace.mirror.errors import MirrorError
from headrace.mirror.listener import Listener

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

_PAUSE_S = 0.2
# A topic that was just made is not known to every broker yet. One that is not known for so long is
# not there, and no patience helps.
UNKNOWN_S = 30.0
_WATCH_S = 0.1  # how often something else is looked after while an answer is waited for
_ANSWER_S = 1.0  # for librdkafka's own answer to arrive after its time is over
_Answer = TypeVar("_Answer")


def _nothing() -> None:
    pass


class StoppedError(Exception):
    """A stop was asked for while something was waited for. Never leaves the package."""


class End:
    """`label` is how the operator named it. Owned by one thread."""

    def __init__(
        self,
        label: str,
        config: Mapping[str, object],
        *,
        timeout_s: float = 10.0,
        listener: Listener,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.label = label
        self.timeout_s = timeout_s
        self.is_patient = False
        self.is_stopped = is_stopped
        # Called while an answer is waited for: what is under way meanwhile needs watching. It may
        # raise, which ends the question.
        self.meanwhile: Callable[[], None] = _nothing
        self._listener = listener
        self._config = dict(config)
        self._is_out = False
        self._admin: Any = None
        self.fatal: KafkaError | None = None
        self.is_lost = False  # whether the producer has lost a connection

    @property
    def bootstrap(self) -> str:
        return str(self._config["bootstrap.servers"])

    @property
    def admin(self) -> Any:
        """The AdminClient. Of its calls only those that go to no group coordinator are used:
        the others can end the process when a broker dies under them."""
        if self._admin is None:
            from confluent_kafka import admin as _admin

            kafka: Any = _admin  # its annotations hide half of what it exports
            self._admin = kafka.AdminClient(self._client_config({}))
        return self._admin

    def consumer(self, more: Mapping[str, object]) -> "Consumer":
        """A consumer that commits nothing by itself and never guesses a position."""
        from confluent_kafka import Consumer

        fixed = {
            "group.id": "headrace-mirror",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
        }
        return Consumer(self._client_config({**fixed, **more}))

    def producer(self, more: Mapping[str, object]) -> "Producer":
        """A producer with this configuration."""
        from confluent_kafka import Producer

        self.fatal, self.is_lost = None, False
        return Producer({**self._client_config(more), "error_cb": self._on_producer_error})

    def ask(self, question: "Callable[[], _Answer]") -> _Answer:
        """The answer, asked for again while that may help; raises MirrorError with the reason."""
        from confluent_kafka import KafkaError, KafkaException

        deadline = time.monotonic() + self.timeout_s
        unknown_since: float | None = None
        while True:
            try:
                answer = question()
            except (KafkaException, TimeoutError) as error:
                is_told = isinstance(error, KafkaException)
                cause = error.args[0] if is_told else KafkaError(KafkaError._TIMED_OUT)
                now = time.monotonic()
                is_over = now >= deadline and not self.is_patient
                if is_unknown(cause):
                    unknown_since = unknown_since or now
                    is_over = is_over or now - unknown_since >= UNKNOWN_S
                elif not is_passing(cause):
                    is_over = True
                else:
                    unknown_since = None
                if is_over:
                    raise MirrorError(f"{self.label}: {cause.str() or cause.name()}") from error
                self._tell_outage(cause)
                self.pause()
            else:
                self.answered()
                return answer

    def ask_admin(self, question: "Callable[[], Future[_Answer]]") -> _Answer:
        """The result of one future of the AdminClient, in the same way."""
        return self.ask(lambda: self.result(question()))

    def result(self, future: "Future[_Answer]") -> _Answer:
        """What one future of the AdminClient comes to; TimeoutError after `timeout_s`."""
        deadline = time.monotonic() + self.timeout_s + _ANSWER_S
        while True:
            try:
                return future.result(_WATCH_S)
            except TimeoutError:
                if future.done() or time.monotonic() > deadline:
                    raise
                self.meanwhile()

    def pause(self, seconds: float = _PAUSE_S) -> None:
        """Wait a moment; raises StoppedError when a stop was asked for."""
        if self.is_stopped():
            raise StoppedError
        time.sleep(seconds)
        self.meanwhile()

    def answered(self) -> None:
        """A broker has answered."""
        if self._is_out:
            self._is_out = False
            self._listener.note(f"{self.label} answers again")

    def _client_config(self, more: Mapping[str, object]) -> dict[str, object]:
        # What the mirror relies on wins over what the operator gave.
        return {**self._config, **more, "error_cb": self._on_error}

    def _on_producer_error(self, error: "KafkaError") -> None:
        if is_silence(error):
            self.is_lost = True
        self._on_error(error)

    def _on_error(self, error: "KafkaError") -> None:
        if error.fatal():
            self.fatal = error
        elif error.code() == error._ALL_BROKERS_DOWN:
            self._tell_outage(error)
        elif error.code() in (error._SSL, error._AUTHENTICATION):
            self._listener.note(f"{self.label}: {error.str()}")

    def _tell_outage(self, error: "KafkaError") -> None:
        if is_silence(error) and not self._is_out:
            self._is_out = True
            self._listener.note(f"{self.label} does not answer; trying on")
