"""The ways to run a cluster (systemd, Compose, Strimzi) promise the same."""

from typing import Any

import pytest
import yaml
from tests.deploy.deployment import DEPLOY, read_properties
from tests.deploy.test_properties import BROKER_SETTINGS

from headrace.kafka.jars import KAFKA_VERSION

PROMISES = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "log.retention.hours": "168",
    "num.partitions": "3",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
# Of new topics, which controllers make: brokers warn of these, and Kafka 5.0 ignores them there.
FOR_CONTROLLERS = {"default.replication.factor", "num.partitions"}
FOR_BROKERS = {key: value for key, value in PROMISES.items() if key not in FOR_CONTROLLERS}
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text("utf-8"))
STRIMZI = [
    document
    for path in sorted((DEPLOY / "strimzi").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text("utf-8"))
]
# Of the image's start scripts, not of Kafka.
SCRIPT_VARIABLES = {"CLUSTER_ID", "KAFKA_HEAP_OPTS"}


def compose_settings(service: str) -> dict[str, str]:
    """The settings that the image makes of a service's variables."""
    return {
        name.removeprefix("KAFKA_").replace("_", ".").lower(): str(value)
        for name, value in COMPOSE["services"][service]["environment"].items()
        if name not in SCRIPT_VARIABLES
    }


def strimzi(kind: str, name: str | None = None) -> Any:
    found = [
        each
        for each in STRIMZI
        if each["kind"] == kind and name in (None, each["metadata"]["name"])
    ]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]["spec"]


def promises_of(settings: dict[str, str]) -> dict[str, str]:
    return {key: str(settings[key]) for key in PROMISES if key in settings}


def test_the_properties_of_both_roles_together_hold_every_promise() -> None:
    broker, controller = (
        promises_of(read_properties(DEPLOY / "kafka" / f"{role}.properties"))
        for role in ("broker", "controller")
    )

    assert broker == FOR_BROKERS
    assert controller.keys() > FOR_CONTROLLERS
    assert controller.items() <= PROMISES.items()


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_compose_promises_the_same(service: str) -> None:
    expected = PROMISES if service.startswith("controller") else FOR_BROKERS
    assert promises_of(compose_settings(service)) == expected


def test_strimzi_promises_the_same() -> None:
    assert promises_of(strimzi("Kafka")["kafka"]["config"]) == PROMISES


def test_a_strimzi_topic_has_the_factor_and_the_minimum_of_the_cluster() -> None:
    topic = strimzi("KafkaTopic")

    assert str(topic["replicas"]) == PROMISES["default.replication.factor"]
    assert str(topic["config"]["min.insync.replicas"]) == PROMISES["min.insync.replicas"]


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_every_variable_of_compose_is_a_setting_of_kafka(service: str) -> None:
    assert compose_settings(service).keys() - BROKER_SETTINGS == set()


def test_every_setting_of_strimzi_is_one_of_kafka() -> None:
    assert strimzi("Kafka")["kafka"]["config"].keys() - BROKER_SETTINGS == set()


def test_all_run_the_version_that_headrace_runs() -> None:
    images = {each["image"] for each in COMPOSE["services"].values()}

    assert images == {f"apache/kafka:{KAFKA_VERSION}"}
    assert strimzi("Kafka")["kafka"]["version"] == KAFKA_VERSION
    for name in ("broker", "controller"):
        unit = (DEPLOY / "systemd" / f"kafka-{name}@.service").read_text("utf-8")
        assert f"kafka_2.13-{KAFKA_VERSION}.tgz" in unit


def test_compose_has_three_controllers_and_three_brokers_with_volumes_of_their_own() -> None:
    roles = [compose_settings(name)["process.roles"] for name in COMPOSE["services"]]
    volumes = [mount for each in COMPOSE["services"].values() for mount in each["volumes"]]

    assert sorted(roles) == ["broker"] * 3 + ["controller"] * 3
    assert len({*volumes}) == 6
    assert {mount.split(":")[0] for mount in volumes} == COMPOSE["volumes"].keys()


def test_compose_gives_every_node_its_own_id_and_opens_ports_to_this_host_alone() -> None:
    ids = {compose_settings(name)["node.id"] for name in COMPOSE["services"]}
    ports = [port for each in COMPOSE["services"].values() for port in each.get("ports", ())]

    assert len(ids) == 6
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_strimzi_has_three_of_each_role_on_machines_and_zones_of_their_own(role: str) -> None:
    pool = strimzi("KafkaNodePool", role)
    pod = pool["template"]["pod"]
    apart = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert (pool["replicas"], pool["roles"]) == (3, [role])
    assert [rule["topologyKey"] for rule in apart] == ["kubernetes.io/hostname"]
    assert pod["topologySpreadConstraints"][0]["topologyKey"] == "topology.kubernetes.io/zone"


def test_strimzi_reads_the_same_beans_as_the_agent_of_systemd() -> None:
    inside = next(each for each in STRIMZI if each["kind"] == "ConfigMap")["data"]

    assert yaml.safe_load(inside["jmx-exporter.yaml"]) == yaml.safe_load(
        (DEPLOY / "monitoring" / "jmx-exporter.yaml").read_text("utf-8")
    )
