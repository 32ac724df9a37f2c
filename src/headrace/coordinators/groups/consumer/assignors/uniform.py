"""The `uniform` assignor: members get equally many partitions and keep what they can.

When all subscribe to the same topics, loads differ by at most one, and no partition moves but
those that have to. When they do not, see `balance`.
"""

from collections.abc import Sequence
from uuid import UUID

from headrace.coordinators.groups.consumer.assignors.balance import balance
from headrace.coordinators.groups.consumer.assignors.spec import (
    MemberSpec,
    Partition,
    PartitionCounts,
    to_assignment,
)
from headrace.coordinators.groups.records import Assignment


def assign_uniformly(
    members: Sequence[MemberSpec], counts: PartitionCounts
) -> dict[str, Assignment]:
    """Give each member its target assignment."""
    if not members:
        return {}
    kept = _still_valid(members, counts)
    taken = {partition for partitions in kept.values() for partition in partitions}
    subscribed = frozenset[UUID]().union(*(member.topics for member in members))
    free = [
        (topic, partition)
        for topic, count in counts.items()
        if topic in subscribed
        for partition in range(count)
        if (topic, partition) not in taken
    ]
    if all(member.topics == members[0].topics for member in members):
        shares = _share_equally(kept, free)
    else:
        shares = balance(members, kept, free)
    return {member_id: to_assignment(partitions) for member_id, partitions in shares.items()}


def _still_valid(
    members: Sequence[MemberSpec], counts: PartitionCounts
) -> dict[str, list[Partition]]:
    """What each member had and may keep: still there, still subscribed to, no one else's."""
    kept: dict[str, list[Partition]] = {}
    taken: set[Partition] = set()
    for member in sorted(members):
        found = [
            (topic, partition)
            for topic, partitions in sorted(member.assigned.items())
            if topic in member.topics
            for partition in partitions
            if partition < counts.get(topic, 0) and (topic, partition) not in taken
        ]
        taken.update(found)
        kept[member.member_id] = found
    return kept


def _share_equally(
    kept: dict[str, list[Partition]], free: list[Partition]
) -> dict[str, list[Partition]]:
    """Level the loads. Who has most keeps the one more that some get, so fewest move."""
    total = len(free) + sum(map(len, kept.values()))
    quota, extra = divmod(total, len(kept))
    shares: dict[str, list[Partition]] = {}
    open_seats: list[str] = []
    by_load = sorted(kept, key=lambda member_id: (-len(kept[member_id]), member_id))
    for index, member_id in enumerate(by_load):
        limit = quota + (index < extra)
        shares[member_id] = kept[member_id][:limit]
        free += kept[member_id][limit:]
        open_seats += [member_id] * (limit - len(shares[member_id]))

    # Deal in turn instead of filling one member after the other: so each topic is spread, too.
    dealt: dict[str, int] = {}
    turns = []
    for member_id in open_seats:
        turn = dealt[member_id] = dealt.get(member_id, 0) + 1
        turns.append((turn, member_id))
    for (_, member_id), partition in zip(sorted(turns), free, strict=True):
        shares[member_id].append(partition)
    return shares
