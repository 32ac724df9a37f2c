"""Ctrl-C and SIGTERM as a question that is asked at a good moment, not as an exception.

The first signal lets a command finish what it has in hand; the last one it was made for ends
the process at once.
"""

import os
import signal
import sys
import time
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NAP_S = 0.05  # the longest that a sleeper does not look for a signal


class Interruption:
    """`with Interruption() as interruption: while not interruption: …`. For the main thread."""

    def __init__(self, last: int = 2) -> None:
        self.count = 0
        self._last = last
        self._number = 0
        self._former: dict[int, Any] = {}

    def __bool__(self) -> bool:
        """Whether a signal has come."""
        return self.count > 0

    @property
    def exit_code(self) -> int:
        """What shells make of the signal: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self._number

    def sleep_until(self, at_s: float) -> bool:
        """Sleep until this time of the monotonic clock; False when a signal came before it."""
        while not self:
            left_s = at_s - time.monotonic()
            if left_s <= 0:
                return True
            time.sleep(min(left_s, _NAP_S))
        return False

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._former[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count >= self._last:
            # Not sys.exit: a write to a pipe that nobody reads would go on waiting.
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"headrace: ended at once\n")
            os._exit(128 + number)
        self._number = number
