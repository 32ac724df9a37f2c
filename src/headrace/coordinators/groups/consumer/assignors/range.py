"""The `range` assignor: of each topic, a member gets one stretch of partitions.

Subscribers stand in one order for all topics, so those of topics with equally many partitions
and the same subscribers get equal stretches (co-partitioning). Static members come first, by
instance id: who returns under a new member id gets its old place.
"""

from collections.abc import Sequence
from uuid import UUID

from headrace.coordinators.groups.consumer.assignors.spec import MemberSpec, PartitionCounts
from headrace.coordinators.groups.records import Assignment


def assign_ranges(members: Sequence[MemberSpec], counts: PartitionCounts) -> dict[str, Assignment]:
    """Give each member its target assignment."""
    in_order = sorted(members, key=_place)
    targets: dict[str, Assignment] = {member.member_id: {} for member in members}
    for topic in sorted(counts):
        subscribers = [member.member_id for member in in_order if topic in member.topics]
        if subscribers:
            _share_out(topic, counts[topic], subscribers, targets)
    return targets


def _place(member: MemberSpec) -> tuple[bool, str]:
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member.member_id


def _share_out(
    topic: UUID, partition_count: int, subscribers: list[str], targets: dict[str, Assignment]
) -> None:
    quota, extra = divmod(partition_count, len(subscribers))
    start = 0
    for index, member_id in enumerate(subscribers):
        end = start + quota + (index < extra)
        if end > start:
            targets[member_id][topic] = tuple(range(start, end))
        start = end
