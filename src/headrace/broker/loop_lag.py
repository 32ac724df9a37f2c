"""How late the event loop runs: the first sign that something blocks it."""

import asyncio

from headrace.metrics import Gauge

_TICK_SECONDS = 1.0


class LoopLag:
    """Sets `gauge` once a second to how late its own timer fired. Event-loop thread only."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to tick."""
        loop = asyncio.get_running_loop()
        due = loop.time() + _TICK_SECONDS
        self._timer = loop.call_at(due, self._tick, loop, due)

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._gauge.value = max(0.0, loop.time() - due)
        next_due = loop.time() + _TICK_SECONDS
        self._timer = loop.call_at(next_due, self._tick, loop, next_due)
