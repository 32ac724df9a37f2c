"""Waiting for what is not there yet: a deadline, a pause that grows, a stop that interrupts."""

import time
from collections.abc import Callable
from typing import TypeVar

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_SLICE_S = 0.1  # how late a stop is noticed
_Answer = TypeVar("_Answer")


class StoppedError(Exception):
    """A stop was asked for while something was waited for."""


class Patience:
    """One wait of at most `timeout_s`; None waits until the stop. Owned by one thread.

    Each `pause` is longer than the one before it. `is_stopped` is asked while it lasts, and what
    has to be looked after meanwhile is called; either may end the wait by raising.
    """

    def __init__(
        self,
        timeout_s: float | None,
        *,
        is_stopped: Callable[[], bool] = bool,
        meanwhile: Callable[[], object] = bool,
        first_pause_s: float = _FIRST_PAUSE_S,
        longest_pause_s: float = _LONGEST_PAUSE_S,
    ) -> None:
        self.timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._is_stopped = is_stopped
        self._meanwhile = meanwhile
        self._pause_s = first_pause_s
        self._longest_pause_s = longest_pause_s

    @property
    def left_s(self) -> float:
        """What is left of the time; never negative."""
        if self._deadline is None:
            return float("inf")
        return max(self._deadline - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    def pause(self) -> bool:
        """Wait a moment; False when the time is over, StoppedError when a stop was asked for."""
        if self.is_over:
            return False
        until = time.monotonic() + min(self._pause_s, self.left_s)
        self._pause_s = min(2 * self._pause_s, self._longest_pause_s)
        while True:
            if self._is_stopped():
                raise StoppedError
            self._meanwhile()
            if (left_s := until - time.monotonic()) <= 0:
                return True
            time.sleep(min(left_s, _SLICE_S))

    def until(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Ask until the answer is a true one, and return it; None when the time is over.

        It is asked once more at the very end, however late that is.
        """
        while True:
            is_last = self.is_over
            if answer := question():
                return answer
            if is_last:
                return None
            self.pause()
