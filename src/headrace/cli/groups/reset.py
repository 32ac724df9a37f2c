"""Move a group's committed offsets: first the plan, which can be shown, then the deed."""

from typing import NamedTuple

from headrace.cli.endings import CommandError, UsageError
from headrace.cli.groups.description import existing
from headrace.client.admin import Admin
from headrace.client.librdkafka import Partition
from headrace.client.partition_bounds import PartitionBounds
from headrace.client.positions import Position, PositionKind


class Move(NamedTuple):
    """One partition's committed offset before and after; None before the first commit."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int


def plan_moves(admin: Admin, group: str, position: Position, topics: list[str]) -> list[Move]:
    """What a reset would change; raises CommandError while the group has members."""
    _refuse_members(admin, group)
    committed = admin.group_offsets(group)
    wanted = _asked_for(admin, topics) if topics else sorted(committed)
    partitions = existing(admin, wanted)
    if not partitions:
        raise CommandError(
            f"group {group} has committed no offsets; name what it is to read with --topic"
        )
    if position.kind is PositionKind.SHIFT:
        for topic, number in partitions:
            if (topic, number) not in committed:
                raise CommandError(
                    f"group {group} has committed nothing in {topic}-{number} to shift; "
                    "use --to with an offset, a time, oldest or latest"
                )
    current = {each: committed.get(each, 0) for each in partitions}
    bounds = PartitionBounds(admin, partitions, is_partial=True)
    new = bounds.within(bounds.offsets_of(position, current))
    for topic, number in partitions:
        if (topic, number) not in new:
            raise CommandError(f"{topic}-{number} has no leader; try again when it has one")
    return [Move(*each, committed.get(each), new[each]) for each in partitions]


def apply_moves(admin: Admin, group: str, moves: list[Move]) -> None:
    """Commit the new offsets in the group's name."""
    offsets = {(each.topic, each.partition): each.new_offset for each in moves}
    admin.set_group_offsets(group, offsets)


def _refuse_members(admin: Admin, group: str) -> None:
    members = admin.describe_group(group).members
    if members:
        clients = sorted({f"{each.client_id} at {each.host}" for each in members})
        noun = "member" if len(members) == 1 else "members"
        raise CommandError(
            f"group {group} has {len(members)} {noun} ({', '.join(clients)}); "
            "stop them first, they would commit over it"
        )


def _asked_for(admin: Admin, topics: list[str]) -> list[Partition]:
    """The partitions that `TOPIC` and `TOPIC:P,…` name."""
    metadata = admin.metadata().topics
    partitions = list[Partition]()
    for word in topics:
        name, _, numbers = word.partition(":")
        if name not in metadata:
            raise CommandError(f"--topic {word}: no topic is called {name}")
        there = list(metadata[name].partitions)
        asked = numbers.split(",") if numbers else [str(number) for number in there]
        for number in asked:
            if not number.isdecimal() or int(number) not in there:
                raise UsageError(f"--topic {word}: {name} has partitions 0 to {there[-1]}")
            partitions.append((name, int(number)))
    return sorted(set(partitions))
