"""How far each group has read: committed offsets by group, topic and partition.

Event-sourced: `commit`, `delete` and `expire` only say what is to be written; `apply` makes it so,
after the write and at load alike. So what is seen here is never ahead of what is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple
from uuid import UUID

from headrace.coordinators.groups.records import OffsetCommit, Tombstone

_NO_OFFSETS: Mapping[str, Mapping[int, OffsetCommit]] = {}


class OffsetToCommit(NamedTuple):
    """One partition of a commit, as a client asks for it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    topic_id: UUID | None = None


class OffsetTable:
    """The offsets of all groups of this broker."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, OffsetCommit]]] = {}

    # --- looking

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommit | None:
        """What the group committed for this partition last, or None."""
        return self.of_group(group_id).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, OffsetCommit]]:
        """Everything the group has committed, by topic and partition."""
        return self._by_group.get(group_id, _NO_OFFSETS)

    def has_any(self, group_id: str) -> bool:
        """Whether the group has committed anything that is still there."""
        return group_id in self._by_group

    def count_of(self, group_id: str) -> int:
        """Partitions for which the group has an offset."""
        return sum(len(partitions) for partitions in self.of_group(group_id).values())

    # --- deciding

    @staticmethod
    def commit(
        group_id: str, offsets: Iterable[OffsetToCommit], now_ms: int, retention_ms: int = -1
    ) -> list[OffsetCommit]:
        """The records of a commit. `retention_ms` is what clients up to v4 may ask for."""
        expire_timestamp_ms = -1 if retention_ms < 0 else now_ms + retention_ms
        return [
            OffsetCommit(
                group_id,
                one.topic,
                one.partition,
                one.offset,
                one.leader_epoch,
                one.metadata or "",
                now_ms,
                expire_timestamp_ms,
                one.topic_id,
            )
            for one in offsets
        ]

    def delete(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> list[Tombstone]:
        """The tombstones of those partitions that have an offset, each once."""
        return [
            _tombstone(group_id, topic, partition)
            for topic, partition in dict.fromkeys(partitions)
            if self.get(group_id, topic, partition) is not None
        ]

    def delete_all(self, group_id: str) -> list[Tombstone]:
        """The tombstones of everything the group has."""
        return [_tombstone(group_id, one.topic, one.partition) for one in self._each(group_id)]

    def delete_topic(self, topic: str) -> dict[str, list[Tombstone]]:
        """The tombstones, by group, of a topic that is gone."""
        return {
            group_id: [_tombstone(group_id, topic, partition) for partition in topics[topic]]
            for group_id, topics in self._by_group.items()
            if topic in topics
        }

    def delete_unless(
        self, group_id: str, is_known: Callable[[OffsetCommit], bool]
    ) -> list[Tombstone]:
        """The tombstones of offsets whose topic is not, or no longer, the one they were for."""
        return [
            _tombstone(group_id, one.topic, one.partition)
            for one in self._each(group_id)
            if not is_known(one)
        ]

    def expire(
        self,
        group_id: str,
        now_ms: int,
        retention_ms: int,
        *,
        since_ms: Callable[[OffsetCommit], int],
        is_subscribed_to: Callable[[str], bool],
    ) -> list[Tombstone]:
        """The tombstones of offsets that are too old; `since_ms` says from when one ages.

        What a group reads at present never expires, however long ago it was committed.
        """
        expired = []
        for topic, partitions in self.of_group(group_id).items():
            if is_subscribed_to(topic):
                continue
            for partition, one in partitions.items():
                if one.expire_timestamp_ms >= 0:
                    is_over = now_ms >= one.expire_timestamp_ms
                else:
                    is_over = now_ms - since_ms(one) >= retention_ms
                if is_over:
                    expired.append(_tombstone(group_id, topic, partition))
        return expired

    # --- changing

    def apply(self, record: OffsetCommit | Tombstone) -> None:
        """Take in a record that is written; a tombstone of what is not there changes nothing."""
        if isinstance(record, OffsetCommit):
            topics = self._by_group.setdefault(record.group_id, {})
            topics.setdefault(record.topic, {})[record.partition] = record
            return
        group_id, topic, partition = record.key
        topics = self._by_group.get(str(group_id), {})
        partitions = topics.get(str(topic), {})
        if partitions.pop(int(partition), None) is None:
            return
        if not partitions:
            del topics[str(topic)]
        if not topics:
            del self._by_group[str(group_id)]

    def _each(self, group_id: str) -> Iterator[OffsetCommit]:
        for partitions in self.of_group(group_id).values():
            yield from partitions.values()


def _tombstone(group_id: str, topic: str, partition: int) -> Tombstone:
    return Tombstone(OffsetCommit, (group_id, topic, partition))
