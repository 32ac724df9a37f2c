"""Moves the leadership of the drill's partitions, so that a fault hits the role it is meant for.

The order of a partition's replicas is changed, which moves no data, and the first one elected.
"""

from collections.abc import Iterable

from headrace.client.cluster_questions import Replica
from headrace.client.librdkafka import Partition

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
