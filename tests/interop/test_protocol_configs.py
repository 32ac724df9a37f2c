"""Settings: described, changed and refused as Kafka does it, on both engines."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.wire import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    METADATA,
    Engine,
    WireClient,
    batch_of,
)

from headrace.settings.own import DEFAULTS

CAPTURES = Path(__file__).parents[1] / "data" / "kafka-4.3.1"
NONE, UNKNOWN_TOPIC, MESSAGE_TOO_LARGE, INVALID_CONFIG, INVALID_REQUEST = 0, 3, 10, 40, 42
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": 1,
    "DYNAMIC_BROKER_CONFIG": 2,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
    "STATIC_BROKER_CONFIG": 4,
    "DEFAULT_CONFIG": 5,
}
TYPES = [
    "UNKNOWN",
    "BOOLEAN",
    "STRING",
    "INT",
    "SHORT",
    "LONG",
    "DOUBLE",
    "LIST",
    "CLASS",
    "PASSWORD",
]
# Kafka opens and closes listeners while it runs; headrace binds once, and says so.
FIXED_IN_HEADRACE = {"listeners", "listener.security.protocol.map"}


def describe(
    wire: WireClient, kind: int, name: str, keys: list[str] | None = None, version: int = 4
) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    fields: dict[str, Any] = {"resources": [resource], "include_synonyms": True}
    if version >= 3:
        fields["include_documentation"] = False
    return wire.call(DESCRIBE_CONFIGS, version, **fields).results[0]


def value_of(wire: WireClient, topic: str, key: str) -> tuple[str, int]:
    (config,) = describe(wire, TOPIC, topic, [key]).configs
    return config.value, config.config_source


def alter(wire: WireClient, kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:
    """Change settings one by one; return the answer for the resource."""
    configs = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in changes
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = wire.call(INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    return answer.responses[0]


def replace(wire: WireClient, topic: str, validate_only: bool = False, **configs: str) -> Any:
    pairs = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    resource = {"resource_type": TOPIC, "resource_name": topic, "configs": pairs}
    answer = wire.call(ALTER_CONFIGS, 2, resources=[resource], validate_only=validate_only)
    return answer.responses[0]


@pytest.fixture
def plain_topic(wire: WireClient, new_topic: Callable[..., str]) -> str:
    """A topic without any setting of its own."""
    topic = new_topic()
    replace(wire, topic)
    while value_of(wire, topic, "retention.ms")[1] == 1:
        pass  # real Kafka's broker hears of it from its controller
    return topic


def captured_topic_configs(engine: Engine) -> list[dict[str, Any]]:
    """What 4.3.1 said, where headrace should say the same."""
    captured = json.loads((CAPTURES / "topic_configs.json").read_text())
    if engine.name == "headrace":
        for config in captured:
            # Kafka's controller sets it for the whole cluster when it keeps eligible leader
            # replicas (KIP-966). One node has none to keep: here it is a plain default.
            if config["name"] == "min.insync.replicas":
                config["source"] = "DEFAULT_CONFIG"
                config["synonyms"] = config["synonyms"][-1:]
    return captured


def test_a_topic_has_every_setting_of_kafka_4_3_1(
    wire: WireClient, plain_topic: str, engine: Engine
) -> None:
    answer = describe(wire, TOPIC, plain_topic)

    described = {
        config.name: (config.value, config.config_type, config.config_source, config.read_only)
        for config in answer.configs
    }
    assert described == {
        config["name"]: (
            config["value"],
            TYPES.index(config["type"]),
            SOURCES[config["source"]],
            config["read_only"],
        )
        for config in captured_topic_configs(engine)
    }


def test_synonyms_of_topic_settings_are_those_of_kafka(
    wire: WireClient, plain_topic: str, engine: Engine
) -> None:
    answer = describe(wire, TOPIC, plain_topic)

    described = {
        config.name: [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]
        for config in answer.configs
    }
    assert described == {
        config["name"]: [
            (name, value, SOURCES[source]) for name, value, source in config["synonyms"]
        ]
        for config in captured_topic_configs(engine)
    }


@pytest.fixture
def broker_id(wire: WireClient) -> str:
    (broker,) = wire.call(METADATA, 1, topics=[]).brokers
    return str(broker.node_id)


def test_a_broker_has_every_setting_of_kafka_4_3_1(
    wire: WireClient, broker_id: str, engine: Engine
) -> None:
    captured = json.loads((CAPTURES / "broker_configs.json").read_text())
    kafka = {config["name"]: config for config in captured}

    answer = describe(wire, BROKER, broker_id)

    described = {config.name: config for config in answer.configs}
    own = {name for name in described if name.startswith("headrace.")}
    assert set(described) - own == set(kafka)
    assert own == set() or engine.name == "headrace"
    for name, config in described.items():
        if name in own:
            continue
        expected = kafka[name]
        assert config.config_type == TYPES.index(expected["type"]), name
        if engine.name == "kafka" or name not in FIXED_IN_HEADRACE:
            assert config.read_only == expected["read_only"], name
        if engine.name == "headrace" and name in DEFAULTS:
            continue  # a default of ours, with its reason
        if SOURCES[expected["source"]] == config.config_source == SOURCES["DEFAULT_CONFIG"]:
            assert config.value == expected["value"], name


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_describes_only_what_is_asked(
    wire: WireClient, topic: str, version: int
) -> None:
    answer = describe(wire, TOPIC, topic, ["retention.ms", "segment.ms"], version)

    values = {config.name: config.value for config in answer.configs}
    assert values == {"retention.ms": "-1", "segment.ms": "604800000"}


def test_an_unknown_topic_has_no_settings(wire: WireClient) -> None:
    answer = describe(wire, TOPIC, "no-such-topic")

    assert (answer.error_code, answer.configs) == (UNKNOWN_TOPIC, ())


@pytest.mark.parametrize(("kind", "name"), [(BROKER, "4711"), (BROKER, "x"), (99, "x")])
def test_what_cannot_be_described_is_an_invalid_request(
    wire: WireClient, kind: int, name: str
) -> None:
    assert describe(wire, kind, name).error_code == INVALID_REQUEST


def test_a_change_is_seen_and_undone(wire: WireClient, plain_topic: str) -> None:
    assert alter(wire, TOPIC, plain_topic, ("retention.ms", SET, "1234")).error_code == NONE
    _await(lambda: value_of(wire, plain_topic, "retention.ms") == ("1234", 1))

    assert alter(wire, TOPIC, plain_topic, ("retention.ms", DELETE, None)).error_code == NONE
    _await(lambda: value_of(wire, plain_topic, "retention.ms") == ("604800000", 5))


def _await(is_true: Callable[[], bool]) -> None:
    """Real Kafka's broker hears of changes from its controller, after the answer."""
    for _ in range(2000):
        if is_true():
            return
    assert is_true()


def test_a_change_acts_at_once(wire: WireClient, topic: str) -> None:
    batch = batch_of(100)
    assert wire.produce(topic, batch).error_code == NONE

    alter(wire, TOPIC, topic, ("max.message.bytes", SET, str(len(batch) - 1)))

    _await(lambda: wire.produce(topic, batch).error_code == MESSAGE_TOO_LARGE)


def test_lists_grow_and_shrink(wire: WireClient, plain_topic: str) -> None:
    def policy() -> set[str]:
        return set(value_of(wire, plain_topic, "cleanup.policy")[0].split(","))

    alter(wire, TOPIC, plain_topic, ("cleanup.policy", APPEND, "compact"))
    _await(lambda: policy() == {"delete", "compact"})

    alter(wire, TOPIC, plain_topic, ("cleanup.policy", SUBTRACT, "delete"))
    _await(lambda: policy() == {"compact"})


def test_settings_that_are_no_lists_cannot_grow(wire: WireClient, topic: str) -> None:
    refused = alter(wire, TOPIC, topic, ("retention.ms", APPEND, "1"))

    assert refused.error_code == INVALID_CONFIG


def test_alter_configs_replaces_all_settings(wire: WireClient, plain_topic: str) -> None:
    assert replace(wire, plain_topic, retention_ms="1").error_code == NONE
    _await(lambda: value_of(wire, plain_topic, "retention.ms") == ("1", 1))

    assert replace(wire, plain_topic, segment_ms="86400000").error_code == NONE
    _await(lambda: value_of(wire, plain_topic, "segment.ms") == ("86400000", 1))
    assert value_of(wire, plain_topic, "retention.ms") == ("604800000", 5)


def test_a_change_can_be_tried_out(wire: WireClient, plain_topic: str) -> None:
    assert replace(wire, plain_topic, True, retention_ms="1").error_code == NONE
    assert replace(wire, plain_topic, True, retention_ms="x").error_code == INVALID_CONFIG
    assert value_of(wire, plain_topic, "retention.ms") == ("604800000", 5)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("no.such", SET, "1"), INVALID_CONFIG),
        (("retention.ms", SET, "soon"), INVALID_CONFIG),
        (("segment.bytes", SET, "1000"), INVALID_CONFIG),
        (("retention.ms", SET, None), INVALID_REQUEST),
    ],
)
def test_a_change_kafka_refuses_is_refused_and_nothing_changes(
    wire: WireClient, topic: str, change: tuple[str, int, str | None], error: int
) -> None:
    before = describe(wire, TOPIC, topic)

    refused = alter(wire, TOPIC, topic, ("segment.ms", SET, "1"), change)

    assert refused.error_code == error
    assert refused.error_message
    assert describe(wire, TOPIC, topic) == before


def test_an_unknown_operation_is_refused(wire: WireClient, topic: str, engine: Engine) -> None:
    refused = alter(wire, TOPIC, topic, ("retention.ms", 9, "1"))

    # Kafka trips over it (UNKNOWN_SERVER_ERROR); headrace says what is wrong.
    assert refused.error_code == {"kafka": -1, "headrace": INVALID_REQUEST}[engine.name]


def test_an_unknown_topic_cannot_be_changed(wire: WireClient) -> None:
    refused = alter(wire, TOPIC, "no-such-topic", ("retention.ms", SET, "1"))

    assert refused.error_code == UNKNOWN_TOPIC


@pytest.fixture
def changed_broker(wire: WireClient) -> Iterator[Callable[[str, str, str], Any]]:
    """Change dynamic settings of a broker, or of all (named ""), and undo it afterwards."""
    undo: list[tuple[str, str]] = []

    def change(name: str, key: str, value: str) -> Any:
        undo.append((name, key))
        return alter(wire, BROKER, name, (key, SET, value))

    yield change
    for name, key in undo:
        alter(wire, BROKER, name, (key, DELETE, None))


@pytest.mark.parametrize("scope", ["one", "all"])
def test_a_broker_setting_is_the_default_of_topics(
    wire: WireClient,
    plain_topic: str,
    broker_id: str,
    changed_broker: Callable[[str, str, str], Any],
    scope: str,
) -> None:
    name, source = (broker_id, 2) if scope == "one" else ("", 3)

    assert changed_broker(name, "log.segment.bytes", "2097152").error_code == NONE

    _await(lambda: value_of(wire, plain_topic, "segment.bytes") == ("2097152", source))


def test_a_read_only_broker_setting_cannot_be_changed(
    broker_id: str, changed_broker: Callable[[str, str, str], Any]
) -> None:
    refused = changed_broker(broker_id, "node.id", "7")

    assert refused.error_code == INVALID_REQUEST
    assert refused.error_message


@pytest.mark.parametrize("scope", ["one", "all"])
def test_a_broker_keeps_a_name_it_does_not_know_and_never_shows_its_value(
    wire: WireClient,
    broker_id: str,
    changed_broker: Callable[[str, str, str], Any],
    scope: str,
) -> None:
    name, source = (broker_id, 2) if scope == "one" else ("", 3)
    misspelt = "log.retentin.ms"

    assert changed_broker(name, misspelt, "5000").error_code == NONE

    _await(lambda: len(describe(wire, BROKER, name, [misspelt]).configs) == 1)
    (config,) = describe(wire, BROKER, name, [misspelt]).configs
    assert (config.value, config.config_source, config.is_sensitive) == (None, source, True)
    assert alter(wire, BROKER, name, ("no.such", DELETE, None)).error_code == NONE


@pytest.mark.parametrize(
    ("kind", "error"),
    [(TOPIC, INVALID_CONFIG), (GROUP, INVALID_CONFIG), (METRICS, INVALID_REQUEST)],
)
def test_other_resources_take_no_name_they_do_not_know(
    wire: WireClient, topic: str, kind: int, error: int
) -> None:
    refused = alter(wire, kind, topic, ("no.such", SET, "1"))

    assert refused.error_code == error
    assert "no.such" in refused.error_message
    assert alter(wire, kind, topic, ("no.such", DELETE, None)).error_code == NONE


def test_topics_are_listed_among_the_resources_with_settings(wire: WireClient, topic: str) -> None:
    answer = wire.call(LIST_CONFIG_RESOURCES, 1, resource_types=[TOPIC, BROKER])

    listed = {
        (resource.resource_type, resource.resource_name) for resource in answer.config_resources
    }
    assert answer.error_code == NONE
    assert (TOPIC, topic) in listed
    assert {kind for kind, _ in listed} == {TOPIC, BROKER}


def test_a_group_without_settings_has_kafkas_defaults(wire: WireClient) -> None:
    captured = json.loads((CAPTURES / "group_configs.json").read_text())

    answer = describe(wire, GROUP, f"g-{uuid.uuid4()}")

    defaults = {config["name"]: config["value"] for config in captured}
    # A group falls back on the broker's setting, and `engine` has set this one.
    defaults["consumer.assignment.interval.ms"] = "0"
    assert {config.name: config.value for config in answer.configs} == defaults
