"""deploy/kafka: every setting is one of Kafka's, and says why it is there."""

import json
from importlib import resources
from pathlib import Path

import pytest
from tests.deploy.deployment import DEPLOY, read_properties

FILES = sorted((DEPLOY / "kafka").glob("*.properties"))
NODE_FILES = [DEPLOY / "kafka" / "broker.properties", DEPLOY / "kafka" / "controller.properties"]
BROKER_SETTINGS = {
    each["name"]
    for each in json.loads(
        resources.files("headrace.settings").joinpath("broker_configs.json").read_text("utf-8")
    )
}
# Read by org.apache.kafka.metadata.authorizer.StandardAuthorizer, so not in the broker's own list.
AUTHORIZER_SETTINGS = {"super.users", "allow.everyone.if.no.acl.found"}
CLIENT_SETTINGS = {
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.truststore.type",
    "ssl.truststore.location",
}


def without_listener(key: str) -> str:
    """`listener.name.clients.scram-sha-512.sasl.jaas.config` is a `sasl.jaas.config`."""
    if key.startswith("listener.name."):
        key = key.split(".", 3)[3].removeprefix("scram-sha-512.")
    return key


def test_the_files_of_both_roles_are_there() -> None:
    assert {*NODE_FILES} < {*FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_key_is_a_setting_of_kafka(path: Path) -> None:
    known = BROKER_SETTINGS | AUTHORIZER_SETTINGS if path in NODE_FILES else CLIENT_SETTINGS

    assert {without_listener(key) for key in read_properties(path)} - known == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_setting_is_preceded_by_a_reason(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    settings = [number for number, line in enumerate(lines) if line and line[0] != "#"]

    without_reason = [lines[n] for n in settings if n == 0 or not lines[n - 1].startswith("# ")]

    assert settings
    assert without_reason == []


def test_controllers_and_brokers_agree_on_what_both_have() -> None:
    broker, controller = map(read_properties, NODE_FILES)
    own = {"node.id", "listeners", "log.dirs", "process.roles", "listener.security.protocol.map"}
    shared = (broker.keys() & controller.keys()) - own

    assert {"min.insync.replicas", "super.users"} < shared
    assert {key: broker[key] for key in shared} == {key: controller[key] for key in shared}


def test_no_password_is_in_the_files() -> None:
    texts = [path.read_text("utf-8") for path in DEPLOY.rglob("*") if path.is_file()]

    assert texts
    assert not any("PRIVATE KEY" in text for text in texts)
    assert 'password="CHANGE-ME"' in (DEPLOY / "kafka" / "admin.properties").read_text("utf-8")
