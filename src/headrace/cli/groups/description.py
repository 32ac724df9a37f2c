"""What a broker knows about a consumer group: members, what they read, and how far they are."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace.cli.offsets import Partition
from headrace.client.admin import Admin

# Kafka's names; librdkafka has its own, and none for the two states only KIP-848 groups have.
_STATES = {
    "UNKNOWN": "Assigning/Reconciling",
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "DEAD": "Dead",
    "EMPTY": "Empty",
}
DEAD = "Dead"


class MemberFacts(NamedTuple):
    """One member; `host` is an address without Java's leading slash."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[Partition]


class PartitionLag(NamedTuple):
    """One partition the group reads or has committed; None is what nobody knows."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    member_id: str | None
    host: str | None
    client_id: str | None


class GroupFacts(NamedTuple):
    """One group; a group that does not exist is in state Dead, as Kafka has it."""

    group: str
    state: str
    protocol: str
    assignor: str | None
    coordinator: str | None
    partitions: list[PartitionLag]
    members: list[MemberFacts]

    @property
    def total_lag(self) -> int:
        return sum(each.lag or 0 for each in self.partitions)


def state_name(state: Any) -> str:
    """Kafka's name of a state librdkafka reports."""
    return _STATES[state.name]


def look_at_group(admin: Admin, group: str) -> GroupFacts:
    """Describe one group, with the end of each partition it reads."""
    described = admin.describe_group(group)
    members = [_member(each) for each in described.members]
    owners = {partition: member for member in members for partition in member.partitions}
    committed = admin.group_offsets(group)
    partitions = sorted(owners.keys() | committed.keys())
    end = admin.end_offsets(existing(admin, partitions), is_partial=True)
    node = described.coordinator
    return GroupFacts(
        group,
        state_name(described.state),
        described.type.name.lower(),
        described.partition_assignor or None,
        f"{node.host}:{node.port} ({node.id})" if node else None,
        [_lag(each, committed.get(each), end.get(each), owners.get(each)) for each in partitions],
        members,
    )


def existing(admin: Admin, partitions: Iterable[Partition]) -> list[Partition]:
    """Those that are still there and have a leader: others have no offsets."""
    topics = admin.metadata().topics
    led = {
        (name, number)
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
        if partition.leader >= 0
    }
    return [partition for partition in partitions if partition in led]


def _member(member: Any) -> MemberFacts:
    return MemberFacts(
        member.member_id,
        member.group_instance_id or None,
        member.client_id,
        member.host.removeprefix("/"),
        sorted((each.topic, each.partition) for each in member.assignment.topic_partitions),
    )


def _lag(
    partition: Partition, committed: int | None, end: int | None, owner: MemberFacts | None
) -> PartitionLag:
    lag = None if committed is None or end is None else max(end - committed, 0)
    return PartitionLag(
        *partition,
        committed,
        end,
        lag,
        owner.member_id if owner else None,
        owner.host if owner else None,
        owner.client_id if owner else None,
    )
