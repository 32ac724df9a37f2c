"""How many of the process's file descriptors clients may have: the rest is kept for the logs.

Without a bound, a crowd of idle clients would take the descriptor that a log needs to be
written or synced by.
"""

import resource

# The catalog, the HTTP port, the event loop, worker threads that open a file for a moment.
RESERVED = 64


class SocketQuota:
    """Counts sockets. Event-loop thread only."""

    __slots__ = ("limit", "used")

    def __init__(self, log_files: int) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        is_unlimited = soft == resource.RLIM_INFINITY
        self.limit = 2**31 if is_unlimited else max(1, soft - log_files - RESERVED)
        self.used = 0

    def take(self) -> bool:
        """Take one if there is one left."""
        if self.used >= self.limit:
            return False
        self.used += 1
        return True

    def give_back(self) -> None:
        """A socket was closed."""
        self.used -= 1
