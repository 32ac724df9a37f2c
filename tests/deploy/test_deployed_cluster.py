"""deploy/kafka on real nodes: three controllers and three brokers with TLS, SCRAM and ACLs."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.deployment import Deployment, running_deployment

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1800)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with running_deployment(tmp_path_factory.mktemp("deployed")) as running:
        yield running


def produced(client: dict[str, Any], topic: str) -> str:
    """Send one message with acks=all; return the error's name, or nothing."""
    from confluent_kafka import Producer

    errors: list[str] = []
    producer = Producer({**client, "acks": "all", "message.timeout.ms": 30_000, "log_level": 0})
    producer.produce(
        topic, b"x", on_delivery=lambda error, _: errors.append(error.name() if error else "")
    )
    producer.flush(120)
    return errors[0]


def test_three_controllers_vote(cluster: Deployment) -> None:
    status = cluster.admin(QUORUM, "describe", "--status")

    voters = next(line for line in status.splitlines() if line.startswith("CurrentVoters"))
    assert voters.count('"id"') == 3


def test_a_topic_without_a_factor_gets_three_replicas_two_of_them_in_sync_at_least(
    cluster: Deployment,
) -> None:
    cluster.admin(TOPICS, "--create", "--topic", "plain")

    described = cluster.admin(TOPICS, "--describe", "--topic", "plain")
    assert "ReplicationFactor: 3" in described
    assert "PartitionCount: 3" in described
    assert "min.insync.replicas=2" in described


def test_a_user_without_a_rule_may_not_write_and_with_one_may(cluster: Deployment) -> None:
    cluster.admin(TOPICS, "--create", "--topic", "guarded")
    cluster.admin(
        *(CONFIGS, "--alter", "--entity-type", "users", "--entity-name", "ingest"),
        *("--add-config", "SCRAM-SHA-512=[password=ingest-secret]"),
    )
    client = cluster.client("ingest", "ingest-secret")

    before = produced(client, "guarded")
    cluster.admin(
        *(ACLS, "--add", "--allow-principal", "User:ingest"),
        *("--operation", "Write", "--operation", "Describe", "--topic", "guarded"),
    )
    after = produced(client, "guarded")

    assert before == "TOPIC_AUTHORIZATION_FAILED"
    assert after == ""


def test_a_stranger_without_a_certificate_is_not_let_into_the_quorum(cluster: Deployment) -> None:
    import socket
    import ssl

    host, _, port = cluster.controllers.split(",")[0].partition(":")
    context = ssl.create_default_context(cafile=cluster.directory / "tls" / "ca.pem")
    answered = b""
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError),
        socket.create_connection((host, int(port)), timeout=120) as raw,
        context.wrap_socket(raw, server_hostname=host) as connection,
    ):
        # ApiVersions v0, which every node answers to whom it has let in.
        connection.sendall(bytes.fromhex("0000000b 0012 0000 00000001 0001 78"))
        answered = connection.recv(100)

    assert answered == b""


def test_a_write_needs_two_brokers_and_does_not_need_the_third(cluster: Deployment) -> None:
    cluster.admin(TOPICS, "--create", "--topic", "safe", "--partitions", "1")
    client = cluster.client()

    cluster.stop(103)
    with_two = produced(client, "safe")
    cluster.stop(102)
    with_one = produced(client, "safe")
    for node in (102, 103):
        cluster.launch(node)
    for node in (102, 103):
        cluster.await_started(node)
    again = produced(client, "safe")

    assert (with_two, with_one, again) == ("", "_MSG_TIMED_OUT", "")


def test_a_broker_that_lost_its_disk_comes_back_with_all_of_it(cluster: Deployment) -> None:
    import shutil

    cluster.admin(TOPICS, "--create", "--topic", "kept", "--partitions", "1")
    assert produced(cluster.client(), "kept") == ""

    cluster.nodes[102].kill()
    cluster.nodes.pop(102).wait()
    shutil.rmtree(cluster.data_directory(102))
    cluster.format(102, "--no-initial-controllers")
    cluster.launch(102)
    cluster.await_started(102)
    log = cluster.data_directory(102) / "kept-0" / "00000000000000000000.log"
    original: Path = cluster.data_directory(101) / "kept-0" / log.name

    while cluster.admin(TOPICS, "--describe", "--under-replicated-partitions").strip():
        pass  # each question takes a second; the test's time limit ends the wait
    assert log.read_bytes() == original.read_bytes() != b""
