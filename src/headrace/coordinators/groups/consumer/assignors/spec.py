"""What an assignor is told."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from headrace.coordinators.groups.records import Assignment

# Topics in the order in which they are handed out.
PartitionCounts = Mapping[UUID, int]


class MemberSpec(NamedTuple):
    """A member: who it is, what it may get and what it was to have so far."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    assigned: Assignment


Partition = tuple[UUID, int]


def to_assignment(partitions: list[Partition]) -> Assignment:
    """Group partitions by topic, in order."""
    by_topic: dict[UUID, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return {topic: tuple(found) for topic, found in by_topic.items()}
