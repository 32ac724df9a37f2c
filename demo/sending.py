"""Sends the sensor feed to the topic at a pace that rises and falls, in a thread of its own."""

import math
import threading
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from demo.sensors import Books, SensorFeed
from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.producer import Producer
from headrace.errors import HeadraceError

_STEP_SECONDS = 0.02
_WAVE_SECONDS = 20.0
_WAVE_SHARE = 0.6
_CONFIG = {"linger.ms": 20, "compression.type": "lz4", "message.timeout.ms": 30_000}


class FeedError(HeadraceError):
    """The feed could not be sent."""


class FeedSender:
    """Runs for `seconds`, or until it is left: `with FeedSender(…) as feed`.

    `books` belong to the sending thread: read the whole of them after `wait`; `sent` any time.
    """

    def __init__(self, bootstrap: str, topic: str, *, rate: float, seconds: float) -> None:
        self._topic = topic
        self._rate, self._seconds = rate, seconds
        self._feed = SensorFeed()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sensor feed", daemon=True)
        self._failure: BusError | None = None
        self._bus = Bus(bootstrap)

    @property
    def books(self) -> Books:
        return self._feed.books

    @property
    def sent(self) -> int:
        return self._feed.books.sent

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def wait(self) -> Books:
        """Return the books when all is sent; raise FeedError when something was not taken."""
        self._thread.join()
        if self._failure:
            raise FeedError(f"messages were not taken: {self._failure}") from self._failure
        return self.books

    def _run(self) -> None:
        try:
            with Producer(self._bus, config=_CONFIG) as producer:
                self._send_in_waves(producer)
        except BusError as error:
            self._failure = error

    def _send_in_waves(self, producer: Producer) -> None:
        started_at = time.monotonic()
        while not self._stop.is_set():
            elapsed = time.monotonic() - started_at
            if elapsed >= self._seconds:
                return
            due = messages_due(elapsed, self._rate)
            now = datetime.now(UTC)
            while self.sent < due:
                message = self._feed.next(now)
                producer.send(self._topic, message.value, message.key)
            self._stop.wait(_STEP_SECONDS)


def messages_due(elapsed_seconds: float, rate: float) -> float:
    """How many are due by then, when the rate swings around `rate` as a wave."""
    wave = 2 * math.pi / _WAVE_SECONDS
    # The integral of rate * (1 - share * cos(wave * t)): it starts slowly.
    return rate * (elapsed_seconds - _WAVE_SHARE / wave * math.sin(wave * elapsed_seconds))
