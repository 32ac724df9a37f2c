"""How late the event loop runs: the first sign that something blocks it."""

import asyncio

from headrace.metrics import Gauge

_TICK_SECONDS = 1.0


class LoopLag:
    """Sets `gauge` once a second to how late its own timer fired. Event-loop thread only."""

    def __init__(self, gauge: Gauge, loop: asyncio.AbstractEventLoop) -> None:
        self._gauge = gauge
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def start(self) -> None:
        """Begin to tick."""
        self._due = self._loop.time() + _TICK_SECONDS
        self._timer = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._gauge.value = max(0.0, self._loop.time() - self._due)
        self.start()
