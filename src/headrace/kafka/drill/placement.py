"""Moves the leadership of the drill's partitions, so that a fault hits the role it is meant for.

The order of a partition's replicas is changed, which moves no data, and the first one elected.
"""

import datetime
from collections.abc import Iterable, Mapping

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta

from headrace.client.addresses import Address
from headrace.kafka.replicas import Partition, Replica
from headrace.kafka.wire import WireConnection

_TIMEOUT_S = 10.0
_TIMEOUT = i32Timedelta.parse(datetime.timedelta(seconds=_TIMEOUT_S))
_PREFERRED = i8(0)

Orders = dict[Partition, tuple[int, ...]]


def spread(partitions: Iterable[Replica], *, avoid: int | None = None) -> Orders:
    """Give every replica its share of leaders; `avoid` leads only what nobody else can."""
    orders = Orders()
    for each in partitions:
        able = sorted({*each.replicas} - {avoid}) or sorted(each.replicas)
        leader = able[each.partition % len(able)]
        others = [node for node in each.replicas if node != leader]
        orders[each.topic, each.partition] = (leader, *others)
    return orders


def place(address: Address, orders: Mapping[Partition, tuple[int, ...]]) -> None:
    """Have the cluster take these orders and elect each first one; OSError if it does not."""
    by_topic = dict[str, dict[int, tuple[int, ...]]]()
    for (topic, number), replicas in orders.items():
        by_topic.setdefault(topic, {})[number] = replicas
    reassignment = AlterPartitionReassignmentsRequest(
        timeout=_TIMEOUT,
        topics=tuple(
            ReassignableTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=i32(number), replicas=tuple(map(BrokerId, replicas))
                    )
                    for number, replicas in numbers.items()
                ),
            )
            for topic, numbers in by_topic.items()
        ),
    )
    election = ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=tuple(
            TopicPartitions(topic=TopicName(topic), partitions=tuple(map(i32, numbers)))
            for topic, numbers in by_topic.items()
        ),
        timeout=_TIMEOUT,
    )
    with WireConnection(address, _TIMEOUT_S) as connection:
        connection.ask(reassignment)
        connection.ask(election)
