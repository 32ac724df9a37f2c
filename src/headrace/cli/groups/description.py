"""What a broker knows about a consumer group: members, what they read, and how far they are."""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.client.admin import Admin
from headrace.client.descriptions import MemberDescription
from headrace.client.librdkafka import Partition


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
    """One group; with how far it is behind in each partition."""

    group: str
    state: str
    protocol: str
    assignor: str | None
    coordinator: str | None
    partitions: list[PartitionLag]
    members: tuple[MemberDescription, ...]

    @property
    def total_lag(self) -> int:
        return sum(each.lag or 0 for each in self.partitions)


def describe_group(admin: Admin, group: str) -> GroupFacts:
    """Describe one group, with the end of each partition it reads."""
    described = admin.describe_group(group)
    owners = {each: member for member in described.members for each in member.partitions}
    committed = admin.group_offsets(group)
    partitions = sorted(owners.keys() | committed.keys())
    end = admin.end_offsets(existing(admin, partitions), is_partial=True)
    node = described.coordinator
    return GroupFacts(
        group,
        described.state,
        described.protocol,
        described.assignor,
        f"{node.host}:{node.port} ({node.id})" if node else None,
        [_lag(each, committed.get(each), end.get(each), owners.get(each)) for each in partitions],
        described.members,
    )


def existing(admin: Admin, partitions: Iterable[Partition]) -> list[Partition]:
    """Those that are still there and have a leader: others have no offsets."""
    led = {*admin.metadata().led_partitions()}
    return [partition for partition in partitions if partition in led]


def _lag(
    partition: Partition, committed: int | None, end: int | None, owner: MemberDescription | None
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
