"""Which groups there are: made by records, found by id, woken in time.

What is written, by this process or before it, is applied here; so a load and a write end in the
same state. Classic groups make their records from their state, not the other way round: only a
load restores them.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.limits import ClassicLimits, ConsumerLimits
from headrace.coordinators.groups.messages import TopicsView
from headrace.coordinators.groups.offsets import OffsetTable
from headrace.coordinators.groups.records import (
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    Tombstone,
)

Group = ClassicGroup | ConsumerGroup


class GroupEnvironment(NamedTuple):
    """What groups take from the broker: limits, topics, and ids that nobody has had before."""

    topics: TopicsView
    classic_limits: Callable[[], ClassicLimits]
    consumer_limits: Callable[[str], ConsumerLimits]  # by group id
    make_classic_member_id: Callable[[str], str]
    make_consumer_member_id: Callable[[str], str]


class GroupDeadlines:
    """When which group wants to be woken: one deadline for each at most.

    A deadline that moves later is not moved here: the group is woken early, finds nothing to do
    and says anew. That is what keeps a heartbeat free of any of this.
    """

    def __init__(self) -> None:
        self._queue: list[tuple[int, str]] = []
        self._by_group: dict[str, int] = {}

    @property
    def next_ms(self) -> int | None:
        """When `due` may have something to return; perhaps too early, never too late."""
        return self._queue[0][0] if self._queue else None

    def note(self, group_id: str, deadline_ms: int | None) -> None:
        """The group wants to be woken at this time, or earlier if it said so before."""
        if deadline_ms is None:
            return
        noted = self._by_group.get(group_id)
        if noted is None or deadline_ms < noted:
            self._by_group[group_id] = deadline_ms
            heapq.heappush(self._queue, (deadline_ms, group_id))

    def forget(self, group_id: str) -> None:
        """The group is gone."""
        self._by_group.pop(group_id, None)

    def due(self, now_ms: int) -> list[str]:
        """The groups to wake now; each must `note` its next deadline again."""
        groups = []
        while self._queue and self._queue[0][0] <= now_ms:
            deadline_ms, group_id = heapq.heappop(self._queue)
            if self._by_group.get(group_id) == deadline_ms:
                del self._by_group[group_id]
                groups.append(group_id)
        return groups


class GroupRegistry:
    """All groups by id. Single-threaded."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.environment = environment
        self.offsets = OffsetTable()
        self._groups: dict[str, Group] = {}
        self.by_id: Mapping[str, Group] = self._groups
        self.deadlines = GroupDeadlines()

    def groups(self) -> list[Group]:
        """All groups; a list of the caller's own."""
        return list(self._groups.values())

    # --- changing

    def new_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        """An empty classic group that nobody knows of yet."""
        return ClassicGroup(
            group_id,
            self.environment.classic_limits(),
            make_member_id=self.environment.make_classic_member_id,
            now_ms=now_ms,
        )

    def new_consumer(self, group_id: str, now_ms: int) -> ConsumerGroup:
        """An empty group of the new protocol that nobody knows of yet."""
        return ConsumerGroup(
            group_id,
            lambda: self.environment.consumer_limits(group_id),
            make_member_id=self.environment.make_consumer_member_id,
            now_ms=now_ms,
        )

    def put(self, group: Group) -> None:
        """Take the group in; it may replace another of its name."""
        self._groups[group.group_id] = group
        self.note(group)

    def remove(self, group_id: str) -> None:
        """Let the group go."""
        del self._groups[group_id]
        self.deadlines.forget(group_id)

    def note(self, group: Group, at_least_ms: int = 0) -> None:
        """See that the group is woken when it wants to be."""
        deadline_ms = group.next_deadline_ms
        if deadline_ms is not None:
            self.deadlines.note(group.group_id, max(deadline_ms, at_least_ms))

    def due(self, now_ms: int) -> list[Group]:
        """The groups to wake now; each is to be noted again."""
        found = map(self._groups.get, self.deadlines.due(now_ms))
        return [group for group in found if group is not None]

    # --- what is written

    def apply(self, record: GroupRecord, now_ms: int) -> None:
        """Take in a record that is written: by this process, or before it, at load."""
        kind = record.kind if isinstance(record, Tombstone) else type(record)
        group_id = record.group_id
        group = self._groups.get(group_id)
        if isinstance(record, OffsetCommit) or (
            isinstance(record, Tombstone) and kind is OffsetCommit
        ):
            self.offsets.apply(record)
            if group is None and isinstance(record, OffsetCommit):
                # Offsets without members: a consumer that assigns its partitions itself.
                self.put(self.new_classic(group_id, now_ms))
        elif isinstance(record, GroupMetadata):
            limits = self.environment.classic_limits()
            make_id = self.environment.make_classic_member_id
            self.put(ClassicGroup.restore(record, limits, make_member_id=make_id, now_ms=now_ms))
        elif kind is GroupMetadata:
            if isinstance(group, ClassicGroup):
                self.remove(group_id)
        else:
            self._apply_consumer(record, group, now_ms)

    def _apply_consumer(self, record: GroupRecord, group: Group | None, now_ms: int) -> None:
        group_id = record.group_id
        if not isinstance(group, ConsumerGroup):
            if isinstance(record, Tombstone):
                return
            group = self.new_consumer(group_id, now_ms)
            self.put(group)
        group.apply(record)
        # At load a group has nothing to show for itself before its own record comes.
        if isinstance(record, Tombstone) and group.is_void:
            self.remove(group_id)

    def loaded(self, group_ids: Iterable[str], now_ms: int) -> None:
        """These groups were read from disk to the end: their members' sessions start."""
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                if group.is_void:
                    self.remove(group_id)
                    continue
                group.loaded(now_ms)
            if group is not None:
                self.note(group)

    def apply_all(self, records: Iterable[GroupRecord], now_ms: int) -> None:
        """Take in records that are written, in order."""
        for record in records:
            self.apply(record, now_ms)
