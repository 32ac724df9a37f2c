"""A group's durable state: exactly what its records say.

Invariant: only `apply` changes it, and applying the same records always gives the same state, in
whatever order compaction has left the kinds. So a group is loaded by replaying its records.
"""

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from headrace.coordinators.groups.records import (
    Assignment,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    GroupRecord,
    ResolvedRegex,
    TargetAssignmentEpoch,
    TargetAssignmentMember,
    Tombstone,
)

# Where a member is between its current and its target assignment; Kafka's numbers.
STABLE = 0
UNREVOKED_PARTITIONS = 1
UNRELEASED_PARTITIONS = 2

NOTHING: Assignment = {}
_FIRST_EPOCH = 1  # as in Kafka; the first member makes it 2


class GroupState:
    """Members, assignments and epochs of one group. Others read it; `apply` writes it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}  # instance id: member id
        self.current: dict[str, CurrentAssignment] = {}
        self.target: dict[str, Assignment] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        # Who has a partition, or has still to give it up. Others have to wait for it.
        self.owners: dict[tuple[UUID, int], str] = {}
        self.name_counts: Counter[str] = Counter()
        self.regex_counts: Counter[str] = Counter()
        self.classic_count = 0
        self._exists = False

    @property
    def is_void(self) -> bool:
        """Whether the records say that there is no such group."""
        return not self._exists and not self.members

    def current_of(self, member_id: str) -> CurrentAssignment:
        """What a member has; a newcomer has nothing, at epoch 0."""
        found = self.current.get(member_id)
        return found or CurrentAssignment(self.group_id, member_id, 0, 0, STABLE, {}, {})

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """The member that has this instance id."""
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def is_reconciled(self, member_id: str) -> bool:
        """Whether a member has its target, and is told so."""
        current = self.current_of(member_id)
        return current.state == STABLE and current.member_epoch == self.assignment_epoch

    def apply(self, record: GroupRecord) -> None:
        """Take in one record."""
        match record:
            case ConsumerGroupMetadata():
                self._exists = True
                self.epoch, self.metadata_hash = record.epoch, record.metadata_hash
            case ConsumerGroupMember():
                self._forget_member(record.member_id)
                self._add_member(record)
            case TargetAssignmentEpoch():
                self.assignment_epoch = record.epoch
                self.assignment_timestamp_ms = record.timestamp_ms
            case TargetAssignmentMember():
                self.target[record.member_id] = record.partitions
            case CurrentAssignment():
                self._disown(record.member_id)
                self.current[record.member_id] = record
                for partition in _partitions(record):
                    self.owners[partition] = record.member_id
            case ResolvedRegex():
                self.regexes[record.regex] = record
            case Tombstone():
                self._remove(record)

    def _remove(self, tombstone: Tombstone) -> None:
        if tombstone.kind is ConsumerGroupMetadata:
            self._exists, self.epoch, self.metadata_hash = False, _FIRST_EPOCH, 0
        elif tombstone.kind is TargetAssignmentEpoch:
            self.assignment_epoch, self.assignment_timestamp_ms = _FIRST_EPOCH, 0
        elif len(tombstone.key) > 1:
            name = str(tombstone.key[1])
            if tombstone.kind is ConsumerGroupMember:
                self._forget_member(name)
            elif tombstone.kind is TargetAssignmentMember:
                self.target.pop(name, None)
            elif tombstone.kind is CurrentAssignment:
                self._disown(name)
                self.current.pop(name, None)
            elif tombstone.kind is ResolvedRegex:
                self.regexes.pop(name, None)

    def _add_member(self, member: ConsumerGroupMember) -> None:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.name_counts.update(member.topic_names)
        if member.topic_regex:
            self.regex_counts[member.topic_regex] += 1
        self.classic_count += member.classic is not None

    def _forget_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        # Another may have taken over the instance id before this tombstone is read.
        if member.instance_id is not None and (
            self.static_members.get(member.instance_id) == member_id
        ):
            del self.static_members[member.instance_id]
        for name in member.topic_names:
            _count_down(self.name_counts, name)
        if member.topic_regex:
            _count_down(self.regex_counts, member.topic_regex)
        self.classic_count -= member.classic is not None

    def _disown(self, member_id: str) -> None:
        current = self.current.get(member_id)
        if current is not None:
            for partition in _partitions(current):
                if self.owners.get(partition) == member_id:
                    del self.owners[partition]


def _partitions(current: CurrentAssignment) -> Iterator[tuple[UUID, int]]:
    for part in (current.assigned, current.pending_revocation):
        for topic_id, partitions in part.items():
            for partition in partitions:
                yield topic_id, partition


def _count_down(counts: Counter[str], name: str) -> None:
    counts[name] -= 1
    if counts[name] <= 0:
        del counts[name]
