"""The broker's time: the wall clock for what is written down, a steady one for deadlines.

The steady clock starts at the wall clock's time and never jumps: a corrected system clock must
not end anybody's session. Tests move both ahead with `advance`.

A deadline counts only when the loop has read its sockets since it passed. libuv looks at timers
before it looks at sockets: after a stall the time of a client would be up while its request lies
in the socket, sent long ago.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from time import monotonic_ns

# So many times the loop must come round before all that lay in the sockets has had its say:
# uvloop runs what `call_soon` brings before it polls, so the first round sees no socket; in the
# second those are read that are open; in the third those that waited to be accepted; and what is
# served by a task runs a round after it was read.
_ROUNDS = 4


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
        # Whole milliseconds, so that a reading costs an addition.
        self._anchor_ms = int(time.time() * 1000) - monotonic_ns() // 1_000_000
        self._timers: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()
        self._wake_up: asyncio.Handle | None = None
        self._wake_up_ms = 0
        # All that clients had sent by this steady time was read: deadlines up to it have passed.
        self.settled_ms = 0

    def now_ms(self) -> int:
        """Wall-clock time, for what others read."""
        return int(time.time() * 1000) + self._ahead_ms

    def steady_ms(self) -> int:
        """Time that only goes forward, at the speed of the wall clock."""
        return self._anchor_ms + monotonic_ns() // 1_000_000

    async def settle(self) -> int:
        """Return when all that has come in by now was read; by which steady time, `settled_ms`."""
        as_of_ms = self.steady_ms()
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        self.settled_ms = max(self.settled_ms, as_of_ms)
        return as_of_ms

    def call_at(self, steady_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back when this steady time has come and what clients had sent by then was read.

        What the callback compares with deadlines is `settled_ms`.
        """
        timer = Timer(callback)
        heapq.heappush(self._timers, (steady_ms, next(self._numbers), timer))
        self._arm()
        return timer

    def advance(self, ms: int) -> None:
        """For tests: let `ms` pass now, and call back all that fell due meanwhile."""
        self._ahead_ms += ms
        self._anchor_ms += ms
        self._fire(self.steady_ms())

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
        self._wake_up_ms = -1  # nothing is more urgent than what is under way
        self._go_round(self.steady_ms(), _ROUNDS)

    def _go_round(self, as_of_ms: int, rounds_left: int) -> None:
        if rounds_left:
            loop = asyncio.get_running_loop()
            self._wake_up = loop.call_soon(self._go_round, as_of_ms, rounds_left - 1)
        else:
            self._wake_up = None
            self._fire(as_of_ms)

    def _fire(self, as_of_ms: int) -> None:
        self.settled_ms = max(self.settled_ms, as_of_ms)
        while self._timers and self._timers[0][0] <= as_of_ms:
            callback = heapq.heappop(self._timers)[2].callback
            if callback is not None:
                callback()
        self._arm()
