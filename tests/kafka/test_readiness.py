"""Against the embedded broker: the questions are Kafka's, whoever answers them."""

import pytest

from headrace.client.addresses import parse_addresses
from headrace.kafka.errors import ClusterError
from headrace.kafka.readiness import await_ready
from headrace.testing import running_broker


def test_a_cluster_is_ready_when_all_brokers_are_listed_and_all_partitions_served():
    with running_broker() as broker:
        addresses = parse_addresses(broker.bootstrap)
        counts = list[int]()

        await_ready(addresses, [1], 30, counts.append)

        assert counts[-1] == 1
        with pytest.raises(ClusterError, match="nodes 2, 3 are not registered"):
            await_ready(addresses, [1, 2, 3], 0)
