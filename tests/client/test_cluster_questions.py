"""Against the embedded broker: the questions are Kafka's, whoever answers them."""

import pytest
from tests.client.test_wire import closed_port

from headrace.client.bus import Bus
from headrace.client.cluster_questions import ClusterMetadata, Replica, lacking, what_is_missing
from headrace.testing import running_broker

ADDRESS = ("127.0.0.1", 9)


def test_a_cluster_serves_when_all_brokers_are_listed_and_all_partitions_served():
    with running_broker() as broker:
        (address,), counts = Bus(broker.bootstrap).addresses, list[int]()

        assert what_is_missing({1: address}, on_alive=counts.append) == ""
        assert counts == [1]
        missing = what_is_missing({1: address, 2: address, 3: address})
        assert missing == "nodes 2, 3 are not registered"


def test_a_broker_that_does_not_answer_is_named():
    (nobody,) = Bus(closed_port()).addresses

    missing = what_is_missing({7: nobody})

    assert missing.startswith("node 7 does not answer (127.0.0.1:")


@pytest.mark.parametrize(
    ("leader", "isr", "serves", "is_whole"),
    [
        (1, (1, 2), "", ""),
        (None, (1, 2), "orders-4 has no leader", "orders-4 has no leader"),
        (1, (1,), "", "node 2 is not in the ISR of orders-4"),
    ],
)
def test_a_cluster_that_serves_is_whole_when_every_isr_is_full(leader, isr, serves, is_whole):
    partition = Replica("orders", 4, leader, (1, 2), isr, {})
    found = ClusterMetadata({1: ADDRESS, 2: ADDRESS}, [partition])

    assert lacking(found, [1, 2]) == serves
    assert lacking(found, [1, 2], is_whole=True) == is_whole
