"""Long-polling fetches: who waits for which log to grow."""

from typing import Protocol

from headrace.log.partition_log import PartitionLog


class Waiter(Protocol):
    """A fetch that has not found enough to answer with."""

    def on_append(self, byte_count: int) -> None:
        """`byte_count` more bytes can be read from a log it waits for."""


class Waiting:
    """Waiters by log. Event-loop thread only."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: dict[PartitionLog, dict[Waiter, None]] = {}

    def add(self, waiter: Waiter, logs: list[PartitionLog]) -> None:
        """Tell `waiter` of every append to `logs` until it is removed."""
        for log in logs:
            self._waiters.setdefault(log, {})[waiter] = None

    def remove(self, waiter: Waiter, logs: list[PartitionLog]) -> None:
        """Forget `waiter`."""
        for log in logs:
            waiters = self._waiters.get(log)
            if waiters is not None:
                waiters.pop(waiter, None)
                if not waiters:
                    del self._waiters[log]

    def notify(self, log: PartitionLog, byte_count: int) -> None:
        """`log` has grown by `byte_count` bytes."""
        waiters = self._waiters.get(log)
        if waiters:
            for waiter in tuple(waiters):
                waiter.on_append(byte_count)

    def wake_all(self) -> None:
        """Let every waiter answer with what there is: topics changed, or the broker stops."""
        for waiters in tuple(self._waiters.values()):
            for waiter in tuple(waiters):
                waiter.on_append(_EVERYTHING)


_EVERYTHING = 2**62  # more than any min_bytes
