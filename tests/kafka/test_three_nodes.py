"""One cluster of three nodes, and everything that is done to it."""

import time
from collections.abc import Iterator

import pytest

from headrace.client.cluster_questions import Replica, quorum
from headrace.kafka.cluster import Cluster, running_cluster
from headrace.kafka.errors import NodeError
from headrace.kafka.node import Node

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1800)]

# A dead node is noticed in seconds, without false alarms on a busy machine.
SETTINGS = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "500"}
MESSAGES = 1000
PATIENCE_S = 300


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("three") / "c"
    with running_cluster(directory, brokers=3, settings=SETTINGS, timeout_s=PATIENCE_S) as cluster:
        _write(cluster, "orders")
        yield cluster


@pytest.fixture(autouse=True)
def whole_again(cluster: Cluster) -> Iterator[None]:
    yield
    for node in cluster.nodes:
        if node.state == "paused":
            node.resume()
    cluster.up(PATIENCE_S)
    _await(cluster, lambda found: all(not each.is_under_replicated for each in found))


def _write(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 3)])[topic].result(120)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(MESSAGES):
        producer.produce(topic, b"%d" % number, partition=number % 3)
    assert producer.flush(120) == 0


def _count(cluster: Cluster, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "count"})
    ends = (consumer.get_watermark_offsets(TopicPartition(topic, each), 60) for each in range(3))
    total = sum(end - start for start, end in ends)
    consumer.close()
    return total


def _await(cluster: Cluster, is_so) -> list[Replica]:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(found := cluster.replicas(60)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_topics_are_spread_over_all_three_and_nobody_lags(cluster: Cluster) -> None:
    found = [each for each in cluster.replicas() if each.topic == "orders"]

    assert {each.leader for each in found} == {1, 2, 3}
    for each in found:
        assert {*each.replicas} == {*each.isr} == {1, 2, 3}
        assert each.lag_by_node == {1: 0, 2: 0, 3: 0}


def test_an_intruder_is_refused_before_java_starts(cluster: Cluster) -> None:
    intruder = Cluster.open(cluster.directory).node(2)
    pid = cluster.node(2).pid

    with pytest.raises(NodeError, match="another Kafka node runs in"):
        intruder.start()

    assert cluster.node(2).pid == pid
    cluster.await_ready(PATIENCE_S)


def test_a_killed_node_falls_out_of_sync_and_catches_up_after_its_start(cluster: Cluster) -> None:
    node = cluster.node(2)
    node.kill()

    assert (node.state, node.pid, node.memory_bytes) == ("stopped", None, None)
    found = _await(cluster, lambda found: all(2 not in each.isr for each in found))
    assert all(each.is_under_replicated and 2 not in each.lag_by_node for each in found)

    _write(cluster, "written-without-2")
    node.start(PATIENCE_S)
    found = _await(cluster, lambda found: all(2 in each.isr for each in found))
    assert all(each.lag_by_node[2] == 0 for each in found if each.topic == "written-without-2")


def test_another_controller_takes_over_from_one_that_is_killed(cluster: Cluster) -> None:
    first = cluster.active_controller(PATIENCE_S)
    cluster.node(first).kill()

    second = cluster.active_controller(PATIENCE_S)

    assert second != first
    assert {*quorum(cluster.bus, PATIENCE_S).lag_by_voter} == {1, 2, 3}


def test_a_paused_node_stands_still_and_goes_on_as_the_same_process(cluster: Cluster) -> None:
    node = cluster.node(3)
    pid = node.pid
    node.pause()

    assert node.state == "paused"
    _await(cluster, lambda found: all(3 not in each.isr for each in found))
    node.resume()
    _await(cluster, lambda found: all(3 in each.isr for each in found))
    assert (node.state, node.pid) == ("running", pid)


def test_a_paused_node_can_be_stopped(cluster: Cluster) -> None:
    node = cluster.node(1)
    node.pause()

    node.stop(grace_s=120)

    assert node.state == "stopped"


def test_a_restarted_node_is_another_process_in_the_same_place(cluster: Cluster) -> None:
    node: Node = cluster.node(1)
    former = node.pid, node.port

    node.restart(PATIENCE_S)

    assert node.pid != former[0]
    assert (node.state, node.port) == ("running", former[1])


def test_after_down_and_up_every_message_is_there_at_once(cluster: Cluster) -> None:
    cluster.down(120)
    assert not cluster.is_running

    again = Cluster.open(cluster.directory)
    again.up(PATIENCE_S)

    assert _count(again, "orders") == MESSAGES


def test_a_node_without_its_fellows_does_not_get_ready_and_says_so(cluster: Cluster) -> None:
    cluster.down(120)

    with pytest.raises(NodeError, match="was not ready within 5 s; its log is"):
        cluster.node(1).start(timeout_s=5)

    assert cluster.node(1).state == "stopped"
