"""How much memory all connections together may use for what they are being sent."""

from collections import deque
from collections.abc import Callable

from headrace.metrics import Gauge

# Of those who wait, when bytes come back: hundreds who wait for hundreds that leave would take
# the loop from everybody. The others try again by themselves every second.
WOKEN_AT_ONCE = 16


class MemoryBudget:
    """Counts buffer bytes above each connection's first small one. Event-loop thread only.

    A connection that is refused pauses reading and is called back, first come
    first served, when others have given enough back.
    """

    __slots__ = ("_gauge", "_limit_bytes", "_waiting", "used_bytes")

    def __init__(self, limit_bytes: int, gauge: Gauge | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._gauge = gauge or Gauge()
        self._waiting: deque[Callable[[], object]] = deque()
        self.used_bytes = 0

    def take(self, size: int) -> bool:
        """Take `size` bytes if the budget has them. A single taker is never starved."""
        if self.used_bytes and self.used_bytes + size > self._limit_bytes:
            return False
        self.used_bytes += size
        self._gauge.value = self.used_bytes
        return True

    def give_back(self, size: int) -> None:
        """Return bytes taken earlier and let those who wait try again."""
        self.used_bytes -= size
        self._gauge.value = self.used_bytes
        for _ in range(min(WOKEN_AT_ONCE, len(self._waiting))):
            self._waiting.popleft()()

    def wait(self, retry: Callable[[], object]) -> None:
        """Call `retry` when bytes come back."""
        self._waiting.append(retry)
