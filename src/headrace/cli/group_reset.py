"""Move a group's committed offsets: first the plan, which can be shown, then the deed."""

from typing import Any, NamedTuple

from headrace.cli.connection import Connection
from headrace.cli.group_facts import committed_offsets, describe_group, existing
from headrace.cli.offsets import Partition, resolve
from headrace.cli.output import CommandError, UsageError
from headrace.cli.positions import Kind, Position


class Move(NamedTuple):
    """One partition's committed offset before and after; None before the first commit."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int


def plan_moves(
    connection: Connection, admin: Any, group: str, position: Position, topics: list[str]
) -> list[Move]:
    """What a reset would change; raises CommandError while the group has members."""
    _refuse_members(connection, admin, group)
    committed = committed_offsets(connection, admin, group)
    wanted = _asked_for(connection, admin, topics) if topics else sorted(committed)
    partitions = existing(connection, admin, wanted)
    if not partitions:
        raise CommandError(
            f"group {group} has committed no offsets; name what it is to read with --topic"
        )
    if position.kind is Kind.SHIFT:
        for topic, number in partitions:
            if (topic, number) not in committed:
                raise CommandError(
                    f"group {group} has committed nothing in {topic}-{number} to shift; "
                    "use --to with an offset, a time, oldest or latest"
                )
    current = {partition: committed.get(partition, 0) for partition in partitions}
    new = resolve(connection, admin, position, current)
    for topic, number in partitions:
        if (topic, number) not in new:
            raise CommandError(f"{topic}-{number} has no leader; try again when it has one")
    return [Move(*each, committed.get(each), new[each]) for each in partitions]


def apply_moves(connection: Connection, admin: Any, group: str, moves: list[Move]) -> None:
    """Commit the new offsets in the group's name."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    offsets = [TopicPartition(each.topic, each.partition, each.new_offset) for each in moves]
    moved = [ConsumerGroupTopicPartitions(group, offsets)]
    answer = connection.ask_coordinator(
        lambda: admin.alter_consumer_group_offsets(moved, request_timeout=connection.timeout_s)[
            group
        ]
    )
    for each in answer.topic_partitions:
        if each.error is not None:
            raise KafkaException(each.error)


def _refuse_members(connection: Connection, admin: Any, group: str) -> None:
    members = describe_group(connection, admin, group).members
    if members:
        clients = sorted({f"{each.client_id} at {each.host.removeprefix('/')}" for each in members})
        noun = "member" if len(members) == 1 else "members"
        raise CommandError(
            f"group {group} has {len(members)} {noun} ({', '.join(clients)}); "
            "stop them first, they would commit over it"
        )


def _asked_for(connection: Connection, admin: Any, topics: list[str]) -> list[Partition]:
    """The partitions that `TOPIC` and `TOPIC:P,…` name."""
    metadata = admin.list_topics(timeout=connection.timeout_s).topics
    partitions = list[Partition]()
    for word in topics:
        name, _, numbers = word.partition(":")
        if name not in metadata:
            raise CommandError(f"--topic {word}: no topic is called {name}")
        there = sorted(metadata[name].partitions)
        asked = numbers.split(",") if numbers else [str(number) for number in there]
        for number in asked:
            if not number.isdecimal() or int(number) not in there:
                raise UsageError(f"--topic {word}: {name} has partitions 0 to {there[-1]}")
            partitions.append((name, int(number)))
    return sorted(set(partitions))
