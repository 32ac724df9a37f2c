"""Topic configs: each can be asked for, changed and taken back, and acts at once."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from tests.contracts.bus import Bus, wait_for


def configs(bus: Bus, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found: dict[str, ConfigEntry] = bus.done(bus.admin.describe_configs([resource]))[0]
    return found


def alter(bus: Bus, topic: str, name: str, value: str | None, how: AlterConfigOpType) -> None:
    entry = ConfigEntry(name, value, incremental_operation=how)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    bus.done(bus.admin.incremental_alter_configs([resource]))


def test_a_config_given_at_the_start_is_the_topics_own(bus: Bus) -> None:
    topic = bus.new_topic(retention_ms=12345)

    entry = configs(bus, topic)["retention.ms"]

    assert entry.value == "12345"
    assert entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert not entry.is_default


def test_a_config_not_given_is_the_default(bus: Bus, topic: str) -> None:
    entry = configs(bus, topic)["retention.ms"]

    assert entry.value == "604800000"
    assert entry.is_default


# Kafka's whole list, with its defaults as a client sees them.
def test_every_config_of_kafka_is_listed_with_kafkas_default(bus: Bus, topic: str) -> None:
    found = {name: entry.value for name, entry in configs(bus, topic).items()}

    assert len(found) == 33
    assert found == {**found, **DEFAULTS}


def test_a_config_is_changed_and_taken_back(bus: Bus, topic: str) -> None:
    alter(bus, topic, "retention.ms", "777", AlterConfigOpType.SET)
    wait_for(lambda: configs(bus, topic)["retention.ms"].value == "777")

    alter(bus, topic, "retention.ms", None, AlterConfigOpType.DELETE)
    wait_for(lambda: configs(bus, topic)["retention.ms"].value == "604800000")


def test_a_list_is_added_to_and_taken_from(bus: Bus, topic: str) -> None:
    alter(bus, topic, "cleanup.policy", "compact", AlterConfigOpType.APPEND)
    wait_for(lambda: configs(bus, topic)["cleanup.policy"].value == "delete,compact")

    alter(bus, topic, "cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)
    wait_for(lambda: configs(bus, topic)["cleanup.policy"].value == "compact")


def test_a_change_acts_on_the_next_message(bus: Bus, topic: str) -> None:
    bus.send(topic, [b"x" * 5000])
    alter(bus, topic, "max.message.bytes", "1000", AlterConfigOpType.SET)

    def is_refused() -> bool:
        try:
            bus.send(topic, [b"x" * 5000])
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE)
        return False

    wait_for(is_refused)


@pytest.mark.parametrize(
    ("name", "value"),
    [("no.such", "1"), ("retention.ms", "soon"), ("retention.ms", "-5"), ("cleanup.policy", "x")],
)
def test_a_change_that_makes_no_sense_is_refused(
    bus: Bus, topic: str, name: str, value: str
) -> None:
    with pytest.raises(KafkaException) as refused:
        alter(bus, topic, name, value, AlterConfigOpType.SET)

    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_a_topic_that_is_not_there_has_no_configs(bus: Bus, topic: str) -> None:
    with pytest.raises(KafkaException) as refused:
        configs(bus, f"{topic}-none")

    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.5",
    "retention.bytes": "-1",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
