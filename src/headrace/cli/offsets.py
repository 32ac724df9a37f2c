"""Offsets of partitions as the broker knows them: the first, the end, the first at a time."""

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.cli.connection import Connection, admin_types
from headrace.cli.positions import Kind, Position
from headrace.client.error_table import is_leaderless

Partition = tuple[str, int]  # topic and partition


def oldest_offsets(
    connection: Connection, admin: Any, partitions: Iterable[Partition]
) -> dict[Partition, int]:
    """The first offset of each partition that has a leader."""
    return _list_offsets(
        connection, admin, dict.fromkeys(partitions, admin_types().OffsetSpec.earliest())
    )


def end_offsets(
    connection: Connection, admin: Any, partitions: Iterable[Partition]
) -> dict[Partition, int]:
    """The offset the next message gets, of each partition that has a leader."""
    return _list_offsets(
        connection, admin, dict.fromkeys(partitions, admin_types().OffsetSpec.latest())
    )


def offsets_at(
    connection: Connection, admin: Any, timestamp_ms: int, partitions: Iterable[Partition]
) -> dict[Partition, int]:
    """The first offset whose message is not older; the end where all are older."""
    wanted = list(partitions)
    spec = admin_types().OffsetSpec.for_timestamp(timestamp_ms)
    found = _list_offsets(connection, admin, dict.fromkeys(wanted, spec))
    beyond = [partition for partition, offset in found.items() if offset < 0]
    return found | end_offsets(connection, admin, beyond)


def resolve(
    connection: Connection,
    admin: Any,
    position: Position,
    current: Mapping[Partition, int],
) -> dict[Partition, int]:
    """The offsets a position means; a shift counts from `current`, whose keys are what is asked.

    Never outside of what the partition has: an offset before the first is the first.
    """
    oldest = oldest_offsets(connection, admin, current)
    if position.kind is Kind.OLDEST:
        return oldest
    end = end_offsets(connection, admin, current)
    if position.kind is Kind.LATEST:
        return end
    if position.kind is Kind.TIME:
        wanted = offsets_at(connection, admin, max(position.value, 0), current)
    elif position.kind is Kind.OFFSET:
        wanted = dict.fromkeys(current, position.value)
    else:
        wanted = {partition: offset + position.value for partition, offset in current.items()}
    return {
        partition: min(max(wanted[partition], oldest[partition]), end[partition])
        for partition in current
        if partition in oldest and partition in end and partition in wanted
    }


def _list_offsets(
    connection: Connection, admin: Any, wanted: Mapping[Partition, object]
) -> dict[Partition, int]:
    from confluent_kafka import KafkaException, TopicPartition

    if not wanted:
        return {}
    futures = admin.list_offsets(
        {TopicPartition(*partition): spec for partition, spec in wanted.items()},
        request_timeout=connection.timeout_s,
    )
    offsets = dict[Partition, int]()
    for partition, future in futures.items():
        try:
            offsets[partition.topic, partition.partition] = connection.wait(future).offset
        except KafkaException as error:
            if not is_leaderless(error.args[0]):
                raise
    return offsets
