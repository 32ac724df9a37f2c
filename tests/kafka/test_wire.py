"""Against the embedded broker: the questions are Kafka's, whoever answers them."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from headrace.client.addresses import parse_addresses
from headrace.errors import EngineError
from headrace.kafka.errors import ClusterError
from headrace.kafka.readiness import await_ready
from headrace.kafka.replicas import cluster_metadata, replicas
from headrace.kafka.wire import WireConnection, ask_any
from headrace.testing import RunningBroker, running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    from confluent_kafka import Producer

    with running_broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(5):
            producer.produce("orders", b"%d" % number, partition=0)
        assert producer.flush(120) == 0
        yield broker


@contextlib.contextmanager
def silent_listener() -> Iterator[str]:
    """Takes connections and never answers, as a paused node does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_dead_and_a_paused_node_among_the_addresses_do_not_matter(broker):
    with silent_listener() as paused:
        bootstrap = f"{closed_port()},{paused},{broker.bootstrap}"

        found = ask_any(parse_addresses(bootstrap), cluster_metadata, timeout_s=120)

    assert [*found.brokers] == [1]


def test_who_has_no_answer_in_time_is_named():
    dead = closed_port()

    with pytest.raises(
        EngineError, match=f"{dead} gave no answer within 0.3 s: Connection refused"
    ):
        ask_any(parse_addresses(dead), cluster_metadata, timeout_s=0.3)


def test_a_connection_that_closes_early_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = WireConnection(listener.getsockname(), 5)
        listener.accept()[0].close()
        with connection, pytest.raises(OSError, match=r"closed|reset"):
            cluster_metadata(connection)


def test_the_leader_of_a_partition_does_not_lag_behind_itself(broker):
    (replica,) = replicas(broker.bootstrap)

    assert replica[:5] == ("orders", 0, 1, (1,), (1,))
    assert replica.lag_by_node in ({1: 0}, {})
    assert not replica.is_under_replicated


def test_a_cluster_is_ready_when_all_brokers_are_listed_and_all_partitions_served(broker):
    addresses = parse_addresses(broker.bootstrap)
    counts = list[int]()

    await_ready(addresses, [1], 30, counts.append)

    assert counts[-1] == 1
    with pytest.raises(ClusterError, match="nodes 2, 3 are not registered"):
        await_ready(addresses, [1, 2, 3], 0)
