"""A member of a consumer group: partitions come and go, and the reader is told of it.

Before a partition goes, what was printed of it is committed; where it begins, `starts` says.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.cli.consume.committed_offsets import CommittedOffsets
from headrace.cli.consume.read_range import ENDLESS
from headrace.cli.consume.reading import Reader
from headrace.cli.endings import CommandError, tell
from headrace.client.librdkafka import Partition

# A member that went without a word keeps its partitions for a session, by default 45 s.
_ASSIGNMENT_S = 60.0


class GroupMember:
    """Joins on `subscribe`. Its callbacks run inside the consumer's calls, in the same thread."""

    def __init__(
        self,
        consumer: Any,
        reader: Reader,
        offsets: CommittedOffsets,
        *,
        starts: Callable[[Iterable[Partition]], dict[Partition, int]],
        ends: Mapping[Partition, int],
        is_following: bool,
        is_incremental: bool,
    ) -> None:
        self._consumer = consumer
        self._reader = reader
        self._offsets = offsets
        self._starts = starts
        self._ends = ends
        self._is_following = is_following
        self._is_incremental = is_incremental
        self._has_assignment = False
        self._deadline = 0.0

    def subscribe(self, topics: Sequence[str]) -> None:
        """Ask for a share of the topics' partitions."""
        self._deadline = time.monotonic() + _ASSIGNMENT_S
        self._consumer.subscribe(
            list(topics), on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
        )

    def has_read_all(self) -> bool:
        """Whether all that fell to this member is read; one that follows waits for its share."""
        if self._has_assignment or self._is_following:
            return self._has_assignment and not self._reader.open
        if time.monotonic() > self._deadline:
            raise CommandError(f"the group assigned no partitions within {_ASSIGNMENT_S:.0f} s")
        return False

    def _assign(self, _consumer: object, assigned: list[Any]) -> None:
        partitions = [(each.topic, each.partition) for each in assigned]
        starts = self._starts(partitions)
        for each in assigned:
            each.offset = starts[each.topic, each.partition]
        if self._is_incremental:
            self._consumer.incremental_assign(assigned)
        else:
            self._consumer.assign(assigned)
        self._offsets.written(starts)
        # A partition that was made since the start is read only by who follows.
        end_of_new = ENDLESS if self._is_following else 0
        self._reader.open |= {
            each: end
            for each, start in starts.items()
            if start < (end := self._ends.get(each, end_of_new))
        }
        is_empty_share = not partitions and not self._is_incremental
        if is_empty_share and self._is_following:
            tell("no partition fell to this member: others in the group have them all")
        if partitions or (is_empty_share and not self._is_following):
            self._has_assignment = True

    def _revoke(self, consumer: object, revoked: list[Any]) -> None:
        self._offsets.commit()
        self._lose(consumer, revoked)

    def _lose(self, _consumer: object, lost: list[Any]) -> None:
        partitions = [(each.topic, each.partition) for each in lost]
        self._offsets.forget(partitions)
        for each in partitions:
            self._reader.open.pop(each, None)
        if self._is_following:
            self._has_assignment = False  # a share that went is not one that was read
        if self._is_incremental:
            self._consumer.incremental_unassign(lost)
        else:
            self._consumer.unassign()
