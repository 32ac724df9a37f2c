"""How far a group has come, kept by `headrace consume --group`.

Invariant: what is committed has been written to stdout and flushed; the commit may lag behind,
never lead. Where the group had no offset, the place reading began at is committed too: else a
second run that follows from the latest would pass over what came in between.
"""

import time
from collections.abc import Iterable
from typing import Any

from headrace.cli.endings import tell
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition, bus_errors, checked, places

_EVERY_S = 5.0


class CommittedOffsets:
    """Owned by the thread that reads."""

    def __init__(self, consumer: Any, timeout_s: float) -> None:
        self.has_share = self.has_stood = False  # of partitions; had an offset in one of them
        self._consumer = consumer
        self._timeout_s = timeout_s
        self._written: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}
        self._next_at = time.monotonic() + _EVERY_S

    def fetch(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Where the group stands in each of the partitions it has an offset for."""
        wanted = places(dict.fromkeys(partitions, 0))
        found = {
            (each.topic, each.partition): each.offset
            for each in checked(self._consumer.committed(wanted, self._timeout_s) if wanted else [])
            if each.offset >= 0
        }
        self._committed |= found
        self.has_share |= bool(wanted)
        self.has_stood |= bool(found)
        return found

    def written(self, positions: dict[Partition, int]) -> None:
        """Everything before these offsets has left stdout's buffer, or was not wanted."""
        self._written |= positions

    def commit_if_due(self) -> None:
        """Commit every few seconds."""
        if time.monotonic() >= self._next_at:
            self.commit()

    def commit(self) -> bool:
        """Commit what is written; when the group does not take it, say so and return False."""
        self._next_at = time.monotonic() + _EVERY_S
        new = {
            partition: offset
            for partition, offset in self._written.items()
            if self._committed.get(partition) != offset
        }
        if not new:
            return True
        try:
            with bus_errors():
                checked(self._consumer.commit(offsets=places(new), asynchronous=False))
        except BusError as error:
            tell(f"offsets were not committed: {error}")
            return False
        self._committed |= new
        return True

    def finish(self) -> bool:
        """Commit for the last time; later calls do nothing."""
        is_committed = self.commit()
        self._written.clear()
        return is_committed

    def forget(self, partitions: Iterable[Partition]) -> None:
        """They belong to another member now."""
        for partition in partitions:
            self._written.pop(partition, None)
            self._committed.pop(partition, None)
