"""How far a group has come, kept by `headrace consume --group`.

Invariant: what is committed has been written to stdout and flushed; the commit may lag behind,
never lead. Where the group had no offset, the place reading began at is committed too: else a
second run that follows from the latest would pass over what came in between.
"""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.cli.offsets import Partition
from headrace.cli.terminal import tell

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_EVERY_S = 5.0


class GroupOffsets:
    """Owned by the thread that reads."""

    def __init__(self, consumer: "Consumer", timeout_s: float) -> None:
        self.has_share = self.has_stood = False  # of partitions; had an offset in one of them
        self._consumer = consumer
        self._timeout_s = timeout_s
        self._written: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}
        self._next_at = time.monotonic() + _EVERY_S

    def fetch(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Where the group stands in each of the partitions it has an offset for."""
        from confluent_kafka import KafkaException, TopicPartition

        wanted = [TopicPartition(*partition) for partition in partitions]
        found = dict[Partition, int]()
        for each in self._consumer.committed(wanted, self._timeout_s) if wanted else ():
            if each.error is not None:
                raise KafkaException(each.error)
            if each.offset >= 0:
                found[each.topic, each.partition] = each.offset
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
        from confluent_kafka import KafkaException, TopicPartition

        self._next_at = time.monotonic() + _EVERY_S
        new = {
            partition: offset
            for partition, offset in self._written.items()
            if self._committed.get(partition) != offset
        }
        if not new:
            return True
        offsets = [TopicPartition(*partition, offset) for partition, offset in new.items()]
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as failure:
            errors = [failure.args[0]]
        else:
            errors = [answer.error for answer in answers if answer.error is not None]
        if errors:
            tell(f"offsets were not committed: {errors[0].str()}")
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
