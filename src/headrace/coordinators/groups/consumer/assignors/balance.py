"""Balance when members subscribe to different topics.

Loads are levelled as far as subscriptions allow: no partition can be passed from a member to
another with two fewer, not even through others in between. That is the same as saying that the
largest load, then the next largest and so on, are as small as they can be (an optimal
semi-matching; what is searched for is a cost-reducing path).
"""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heapreplace
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from headrace.coordinators.groups.consumer.assignors.spec import MemberSpec, Partition

# Who can be reached: from whom, with a partition of which topic. The start has no such.
_Reached = dict[str, tuple[str, UUID] | None]


def balance(
    members: Sequence[MemberSpec],
    kept: dict[str, list[Partition]],
    free: list[Partition],
) -> dict[str, list[Partition]]:
    """Hand out what is free, then pass partitions on until no one has two too many."""
    return _Balance(members, kept).run(free)


class _Balance:
    def __init__(self, members: Sequence[MemberSpec], kept: dict[str, list[Partition]]) -> None:
        self._members = sorted(member.member_id for member in members)
        self._subscribers: dict[UUID, list[str]] = {}
        for member in sorted(members):
            for topic in member.topics:
                self._subscribers.setdefault(topic, []).append(member.member_id)
        self._load = {member_id: len(found) for member_id, found in kept.items()}
        self._owned: dict[str, dict[UUID, list[int]]] = {}
        for member_id, found in kept.items():
            topics = self._owned[member_id] = {}
            for topic, partition in found:
                topics.setdefault(topic, []).append(partition)

    def run(self, free: list[Partition]) -> dict[str, list[Partition]]:
        # Topics that few subscribe to go first: the others can still make up for it.
        in_order = sorted(free, key=lambda one: (len(self._subscribers[one[0]]), one))
        for topic, partitions in groupby(in_order, key=itemgetter(0)):
            by_load = [(self._load[member], member) for member in self._subscribers[topic]]
            heapify(by_load)
            for _, partition in partitions:
                load, receiver = by_load[0]
                self._give(receiver, topic, partition)
                heapreplace(by_load, (load + 1, receiver))
        self._level()
        return {
            member_id: [(topic, p) for topic, found in topics.items() for p in found]
            for member_id, topics in self._owned.items()
        }

    def _level(self) -> None:
        """Pass partitions on, from the fullest, until no one can be relieved any more."""
        least = min(self._load.values())
        unsettled = set(self._members)
        while unsettled:
            giver = min(unsettled, key=lambda member: (-self._load[member], member))
            if self._load[giver] < least + 2:
                return
            reached = self._reach(giver)
            path = _path_to_last(reached, self._load, giver)
            for source, topic, receiver in path:
                self._give(receiver, topic, self._take(source, topic))
            if path:
                least = min(self._load.values())
            else:
                # All that can be reached is as full, up to one. So neither can those in there be
                # relieved, nor is anything in there of use to the others, who are no fuller.
                unsettled -= reached.keys()

    def _reach(self, giver: str) -> _Reached:
        """Whom partitions can be passed to from here, through whom; up to one with two fewer.

        The nearest comes first: the shortest chain of hand-overs moves least.
        """
        reached: _Reached = {giver: None}
        seen_topics: set[UUID] = set()
        queue = deque([giver])
        while queue:
            source = queue.popleft()
            for topic in sorted(self._owned[source]):
                if topic in seen_topics:
                    continue
                seen_topics.add(topic)
                for receiver in self._subscribers[topic]:
                    if receiver not in reached:
                        reached[receiver] = (source, topic)
                        if self._load[receiver] <= self._load[giver] - 2:
                            return reached
                        queue.append(receiver)
        return reached

    def _give(self, member_id: str, topic: UUID, partition: int) -> None:
        self._owned[member_id].setdefault(topic, []).append(partition)
        self._load[member_id] += 1

    def _take(self, member_id: str, topic: UUID) -> int:
        partitions = self._owned[member_id][topic]
        partition = partitions.pop()
        if not partitions:
            del self._owned[member_id][topic]
        self._load[member_id] -= 1
        return partition


def _path_to_last(
    reached: _Reached, load: dict[str, int], giver: str
) -> list[tuple[str, UUID, str]]:
    """The hand-overs that lead to the one reached last, if it has two fewer than the giver."""
    receiver = next(reversed(reached))
    path: list[tuple[str, UUID, str]] = []
    if load[receiver] <= load[giver] - 2:
        while (step := reached[receiver]) is not None:
            path.append((step[0], step[1], receiver))
            receiver = step[0]
    return path
