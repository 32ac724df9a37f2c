"""Whether the bus can be reached: a TCP connection every few seconds, in a thread of its own.

Spark's connector waits for a broker that went away for minutes without a word; this tells. While
nobody answers it looks more often, so that a run goes on as soon as somebody does.
"""

import socket
import threading
import time
from types import TracebackType
from typing import Self

from headrace.client.bus import Bus

LOOK_INTERVAL_S = 3.0
# A connection that is refused costs nothing, and everybody waits for the first that is not.
AWAY_INTERVAL_S = 0.25
# A broker of the same continent accepts within a tenth of that.
_CONNECT_TIMEOUT_S = 2.0


class BusWatch:
    """Looks from `with` to its end. `unreachable_since` is None while somebody listens."""

    def __init__(self, bus: Bus, interval_s: float | None = None) -> None:
        self._addresses = bus.addresses
        self._interval_s = LOOK_INTERVAL_S if interval_s is None else interval_s
        self._is_over = False
        self._is_to_look = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="bus-watch", daemon=True)
        # Wall clock, in seconds.
        self.unreachable_since: float | None = None

    @property
    def unreachable_for_s(self) -> float:
        """How long nobody has listened; 0 while somebody does."""
        since = self.unreachable_since
        return 0.0 if since is None else max(time.time() - since, 0.0)

    def look(self) -> bool:
        """Look now, in the calling thread."""
        is_reachable = any(_accepts(address) for address in self._addresses)
        if is_reachable:
            self.unreachable_since = None
        elif self.unreachable_since is None:
            self.unreachable_since = time.time()
            self._is_to_look.set()  # and from now on sooner than the thread had planned
        return is_reachable

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over = True
        self._is_to_look.set()
        self._thread.join()

    @property
    def _pause_s(self) -> float:
        is_away = self.unreachable_since is not None
        return min(AWAY_INTERVAL_S, self._interval_s) if is_away else self._interval_s

    def _look_on(self) -> None:
        while not self._is_over:
            self._is_to_look.wait(self._pause_s)
            self._is_to_look.clear()
            if not self._is_over:
                self.look()


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True
