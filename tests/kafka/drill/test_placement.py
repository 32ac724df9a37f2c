from collections import Counter

from headrace.client.cluster_questions import Replica
from headrace.kafka.drill.stage import spread


def partitions(count: int, replicas: tuple[int, ...] = (2, 3, 1)) -> list[Replica]:
    return [Replica("drill", number, 1, replicas, replicas, {}) for number in range(count)]


def test_leaders_are_spread_evenly() -> None:
    orders = spread(partitions(6))

    assert Counter(order[0] for order in orders.values()) == {1: 2, 2: 2, 3: 2}


def test_a_node_to_avoid_leads_nothing() -> None:
    orders = spread(partitions(6), avoid=2)

    assert Counter(order[0] for order in orders.values()) == {1: 3, 3: 3}


def test_no_replica_moves() -> None:
    for order in spread(partitions(6), avoid=3).values():
        assert sorted(order) == [1, 2, 3]


def test_a_node_that_alone_has_a_replica_leads_it_all_the_same() -> None:
    orders = spread(partitions(1, (2,)), avoid=2)

    assert orders == {("drill", 0): (2,)}
