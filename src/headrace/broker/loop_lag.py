"""How late the event loop runs: the first sign that something blocks it.

A timer goes off fifty times a second, which took an idle loop 0.5 % of a core on a busy machine
(twice as often: 1.1 %). A stall shows as at most 20 ms shorter than it was.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter

from headrace.metrics import Gauge, Histogram

_TICK_SECONDS = 0.02
# The worst is told of the last minute, forgotten in steps of five seconds.
_STEP_SECONDS = 5.0
_STEPS = 12


class LoopLag:
    """Notes how late each of its own timers fired. Event-loop thread only."""

    def __init__(
        self,
        lags: Histogram,
        worst: Gauge,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self._lags, self._worst = lags, worst
        self._loop, self._now = loop, now
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._steps: deque[float] = deque([0.0], maxlen=_STEPS)
        self._step_end = 0.0

    def start(self) -> None:
        """Begin to tick."""
        self._step_end = self._now() + _STEP_SECONDS
        self._wait()

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._due = self._now() + _TICK_SECONDS
        self._timer = self._loop.call_later(_TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        now = self._now()
        lag = max(0.0, now - self._due)
        self._lags.observe(lag)
        steps = self._steps
        if now >= self._step_end:
            self._step_end = now + _STEP_SECONDS
            steps.append(lag)
            self._worst.value = max(steps)
        elif lag > steps[-1]:
            steps[-1] = lag
            self._worst.value = max(steps)
        self._wait()
