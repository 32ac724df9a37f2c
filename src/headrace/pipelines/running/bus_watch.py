"""Whether the bus can be reached: a TCP connection every few seconds, in a thread of its own.

Spark's connector waits for a broker that went away for minutes without a word; this tells.
"""

import socket
import threading
import time
from types import TracebackType
from typing import Self

from headrace.pipelines.bus import Bus

LOOK_INTERVAL_S = 3.0
# A broker of the same continent accepts within a tenth of that.
_CONNECT_TIMEOUT_S = 2.0


class BusWatch:
    """Looks from `with` to its end. `unreachable_since` is None while somebody listens."""

    def __init__(self, bus: Bus, interval_s: float | None = None) -> None:
        self._addresses = bus.addresses
        self._interval_s = LOOK_INTERVAL_S if interval_s is None else interval_s
        self._is_over = threading.Event()
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
        self._is_over.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._is_over.wait(self._interval_s):
            self.look()


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True
