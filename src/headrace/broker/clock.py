"""The broker's time: the wall clock for what is written down, a steady one for deadlines.

The steady clock starts at the wall clock's time and never jumps: a corrected system clock must
not end anybody's session. Tests move both ahead with `advance`.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable


class Timer:
    """A callback that waits for its time."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not call back."""
        self.callback = None


class Clock:
    """Event-loop thread only; `call_at` needs a running loop."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._anchor_ms = time.time() * 1000 - time.monotonic() * 1000
        self._timers: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()
        self._wake_up: asyncio.TimerHandle | None = None
        self._wake_up_ms = 0

    def now_ms(self) -> int:
        """Wall-clock time, for what others read."""
        return int(time.time() * 1000) + self._ahead_ms

    def steady_ms(self) -> int:
        """Time that only goes forward, at the speed of the wall clock."""
        return int(self._anchor_ms + time.monotonic() * 1000) + self._ahead_ms

    def call_at(self, steady_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back at this steady time, or at once in the loop's next turn if it is over."""
        timer = Timer(callback)
        heapq.heappush(self._timers, (steady_ms, next(self._numbers), timer))
        self._arm()
        return timer

    def advance(self, ms: int) -> None:
        """For tests: let `ms` pass now, and call back all that fell due meanwhile."""
        self._ahead_ms += ms
        self._fire()

    def stop(self) -> None:
        """Call nobody back any more."""
        self._timers.clear()
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None

    def _arm(self) -> None:
        if not self._timers:
            return
        due_ms = self._timers[0][0]
        if self._wake_up is not None:
            if self._wake_up_ms <= due_ms:
                return
            self._wake_up.cancel()
        self._wake_up_ms = due_ms
        # A millisecond more: the loop may wake up a little before the time asked for.
        seconds = max(0, due_ms - self.steady_ms() + 1) / 1000
        self._wake_up = asyncio.get_running_loop().call_later(seconds, self._on_wake_up)

    def _on_wake_up(self) -> None:
        self._wake_up = None
        self._fire()

    def _fire(self) -> None:
        now_ms = self.steady_ms()
        while self._timers and self._timers[0][0] <= now_ms:
            callback = heapq.heappop(self._timers)[2].callback
            if callback is not None:
                callback()
        self._arm()
