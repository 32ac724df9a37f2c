"""What a real Kafka 4.3.1 describes, entry by entry, against what headrace describes."""

import json
from pathlib import Path
from typing import Any

from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.describe import ConfigEntry
from headrace.settings.own import FIXED_WHILE_RUNNING, OWN_SETTINGS

CAPTURES = Path(__file__).parents[1] / "data" / "kafka-4.3.1"

# Kafka pins this one at cluster level since it elects leaders by eligible replicas (KIP-966),
# which one node does not do.
PINNED_BY_ELR = {"min.insync.replicas"}
# Kafka has another default or none; `own.DEFAULTS` gives the reasons.
OTHER_DEFAULTS = {
    "broker.id",
    "group.consumer.assignment.interval.ms",
    "group.initial.rebalance.delay.ms",
    "listeners",
    "node.id",
    "process.roles",
    "socket.listen.backlog.size",
}


def captured(kind: str) -> dict[str, dict[str, Any]]:
    entries = json.loads((CAPTURES / f"{kind}_configs.json").read_text())
    return {entry["name"]: entry for entry in entries}


def shown(entries: list[ConfigEntry]) -> dict[str, dict[str, Any]]:
    return {
        entry.name: {
            "name": entry.name,
            "value": entry.value,
            "type": entry.type.name,
            "source": entry.source.name,
            "read_only": entry.is_read_only,
            "sensitive": entry.is_sensitive,
            "synonyms": [[name, value, source.name] for name, value, source in entry.synonyms],
        }
        for entry in entries
    }


def difference(ours: dict[str, dict[str, Any]], kafkas: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name in ours.keys() | kafkas.keys() if ours.get(name) != kafkas.get(name)}


def settings_of_the_captured_node() -> BrokerSettings:
    static = {
        name: entry["value"]
        for name, entry in captured("broker").items()
        if entry["source"] == "STATIC_BROKER_CONFIG"
    }
    return BrokerSettings.load(overrides=static)


def test_a_topic_without_overrides_is_described_as_kafka_does() -> None:
    described = shown(BrokerSettings.load().describe_topic({}))

    assert difference(described, captured("topic")) == PINNED_BY_ELR
    assert described["min.insync.replicas"]["value"] == "1"


def test_the_broker_is_described_as_kafka_does_with_the_same_static_settings() -> None:
    described = shown(settings_of_the_captured_node().describe_broker())

    own = {setting.name for setting in OWN_SETTINGS}
    expected = PINNED_BY_ELR | OTHER_DEFAULTS | FIXED_WHILE_RUNNING | own
    assert difference(described, captured("broker")) == expected


def test_where_defaults_differ_everything_but_the_default_is_kafkas() -> None:
    described = shown(settings_of_the_captured_node().describe_broker())

    for name in OTHER_DEFAULTS:
        ours, kafkas = described[name], captured("broker")[name]
        if name in FIXED_WHILE_RUNNING:
            assert (ours.pop("read_only"), kafkas.pop("read_only")) == (True, False)
        if ours["source"] == "DEFAULT_CONFIG":
            assert ours.pop("value") != kafkas.pop("value")
        for entry in (ours, kafkas):
            entry["synonyms"] = [each for each in entry["synonyms"] if each[2] != "DEFAULT_CONFIG"]
        assert ours == kafkas


def test_a_group_without_overrides_is_described_as_kafka_does() -> None:
    described = shown(BrokerSettings.load().describe_group({}))

    # A group falls back on the broker's setting, whose default is ours.
    ours = {name.removeprefix("group.") for name in OTHER_DEFAULTS}
    assert difference(described, captured("group")) == ours & captured("group").keys()
