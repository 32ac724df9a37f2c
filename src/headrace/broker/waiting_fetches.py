"""Long-polling fetches: who waits for which log to grow."""

from collections.abc import Iterable
from typing import Protocol

from headrace.log.partition_log import PartitionLog

# A place costs about 300 bytes with what the fetch remembers of its partition: 75 MB in all. Fifty
# consumers of 5,000 partitions each fit.
MAX_PLACES = 250_000


class Waiter(Protocol):
    """A fetch that has not found enough to answer with."""

    def on_append(self, log: PartitionLog | None, byte_count: int) -> None:
        """`byte_count` more bytes can be read from `log`; None: look at all there is."""


class WaitingFetches:
    """Waiters by log. Event-loop thread only."""

    __slots__ = ("_waiters", "is_closed", "places")

    def __init__(self) -> None:
        self._waiters: dict[PartitionLog, dict[Waiter, None]] = {}
        self.is_closed = False  # the broker stops: nobody is to wait any more
        self.places = 0  # logs that are waited for, counted once for each waiter

    @property
    def is_crowded(self) -> bool:
        """No more waiters should be added."""
        return self.places >= MAX_PLACES

    def add(self, waiter: Waiter, logs: Iterable[PartitionLog]) -> None:
        """Tell `waiter` of every append to `logs` until it is removed."""
        for log in logs:
            waiters = self._waiters.setdefault(log, {})
            if waiter not in waiters:
                waiters[waiter] = None
                self.places += 1

    def remove(self, waiter: Waiter, logs: Iterable[PartitionLog]) -> None:
        """Forget `waiter`."""
        for log in logs:
            waiters = self._waiters.get(log)
            if waiters is not None and waiter in waiters:
                del waiters[waiter]
                self.places -= 1
                if not waiters:
                    del self._waiters[log]

    def notify(self, log: PartitionLog, byte_count: int) -> None:
        """`log` has grown by `byte_count` bytes."""
        waiters = self._waiters.get(log)
        if waiters:
            for waiter in tuple(waiters):
                waiter.on_append(log, byte_count)

    def wake_all(self) -> None:
        """Let every waiter answer with what there is: topics have changed."""
        for waiters in tuple(self._waiters.values()):
            for waiter in tuple(waiters):
                waiter.on_append(None, _EVERYTHING)

    def close(self) -> None:
        """The broker stops: all answer with what there is, and nobody waits any more."""
        self.is_closed = True
        self.wake_all()


_EVERYTHING = 2**62  # more than any min_bytes
