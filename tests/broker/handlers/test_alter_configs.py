from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.alter_configs.v2.request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from kio.static.primitive import i8
from tests.at_once import at_once

from headrace.broker.state import BrokerState

ALTER_CONFIGS = 33
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

Ask = Callable[..., Any]
Configs = dict[str, str | None]


def a_request(
    *resources: tuple[int, str, Configs], validate_only: bool = False
) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=i8(kind),
                resource_name=name,
                configs=tuple(
                    AlterableConfig(name=key, value=value) for key, value in configs.items()
                ),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


def outcome(response: Any) -> tuple[int, str | None]:
    (result,) = response.responses
    return int(result.error_code), result.error_message


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_topics_overrides_are_replaced_at_every_version(
    broker: BrokerState, ask: Ask, version: int
) -> None:
    at_once(broker.topics.create("orders", 1, {"retention.ms": "1", "flush.ms": "2"}))

    request = a_request((TOPIC, "orders", {"retention.ms": "1000"}))

    assert outcome(ask(ALTER_CONFIGS, request, version)) == (0, None)
    assert broker.topics.get("orders").configs == {"retention.ms": "1000"}


def test_no_configs_remove_all_overrides(broker: BrokerState, ask: Ask) -> None:
    at_once(broker.topics.create("orders", 1, {"retention.ms": "1"}))

    assert outcome(ask(ALTER_CONFIGS, a_request((TOPIC, "orders", {})))) == (0, None)
    assert broker.topics.get("orders").configs == {}


def test_validate_only_changes_nothing(broker: BrokerState, ask: Ask) -> None:
    at_once(broker.topics.create("orders", 1, {"retention.ms": "1"}))

    request = a_request((TOPIC, "orders", {}), validate_only=True)

    assert outcome(ask(ALTER_CONFIGS, request)) == (0, None)
    assert broker.topics.get("orders").configs == {"retention.ms": "1"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code", "message"),
    [
        (TOPIC, "nope", {"retention.ms": "1"}, 3, "The topic 'nope' does not exist."),
        (TOPIC, "", {}, 42, "Default topic resources are not allowed."),
        (TOPIC, "t", {"no.such": "1"}, 40, "Unknown topic config name: no.such"),
        (TOPIC, "t", {"retention.ms": None}, 42, "Null value not supported for : retention.ms"),
        (
            TOPIC,
            "t",
            {"segment.bytes": "1000"},
            40,
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (BROKER, "99", {}, 42, "Unexpected broker id, expected 5, but received 99"),
        (BROKER, "abc", {}, 42, "Node id must be an integer, but it is: abc"),
        (BROKER_LOGGER, "5", {"headrace": "INFO"}, 42, "Unknown resource type 8"),
        (GROUP, "", {}, 42, "Default group resources are not allowed."),
        (CLIENT_METRICS, "", {}, 42, "Subscription name can't be empty"),
        (99, "t", {}, 42, "Unknown resource type 99"),
    ],
)
def test_a_change_that_cannot_be_gets_kafkas_error(
    broker: BrokerState, ask: Ask, kind: int, name: str, configs: Configs, code: int, message: str
) -> None:
    at_once(broker.topics.create("t", 1, {"flush.ms": "2"}))

    assert outcome(ask(ALTER_CONFIGS, a_request((kind, name, configs)))) == (code, message)
    assert broker.topics.get("t").configs == {"flush.ms": "2"}


def test_a_key_twice_is_refused(broker: BrokerState, ask: Ask) -> None:
    at_once(broker.topics.create("t", 1, {}))
    config = AlterableConfig(name="retention.ms", value="1")
    resource = AlterConfigsResource(
        resource_type=i8(TOPIC), resource_name="t", configs=(config, config)
    )

    response = ask(ALTER_CONFIGS, AlterConfigsRequest(resources=(resource,), validate_only=False))

    assert outcome(response) == (42, "Error due to duplicate config keys")


def test_a_resource_twice_is_refused_and_the_others_are_changed(
    broker: BrokerState, ask: Ask
) -> None:
    at_once(broker.topics.create("t", 1, {}))
    at_once(broker.topics.create("u", 1, {}))

    response = ask(
        ALTER_CONFIGS,
        a_request(
            (TOPIC, "t", {"retention.ms": "1"}),
            (TOPIC, "u", {"retention.ms": "2"}),
            (TOPIC, "t", {"retention.ms": "3"}),
        ),
    )

    assert [result.error_code for result in response.responses] == [42, 0, 42]
    assert broker.topics.get("t").configs == {}
    assert broker.topics.get("u").configs == {"retention.ms": "2"}


def test_the_brokers_dynamic_settings_are_replaced_and_kept(broker: BrokerState, ask: Ask) -> None:
    node = str(broker.node_id)
    ask(ALTER_CONFIGS, a_request((BROKER, node, {"log.retention.ms": "5"})))

    request = a_request((BROKER, node, {"message.max.bytes": "2000000"}))

    assert outcome(ask(ALTER_CONFIGS, request)) == (0, None)
    assert broker.settings.int("message.max.bytes") == 2000000
    assert not broker.settings.is_set("log.retention.ms")
    assert broker.topics.catalog.broker_configs() == {"message.max.bytes": "2000000"}


def test_a_groups_settings_are_kept_until_none_are_left(broker: BrokerState, ask: Ask) -> None:
    ask(ALTER_CONFIGS, a_request((GROUP, "g", {"share.session.timeout.ms": "46000"})))
    assert broker.settings.dynamic_configs.groups == {"g": {"share.session.timeout.ms": "46000"}}

    ask(ALTER_CONFIGS, a_request((GROUP, "g", {})))
    assert broker.settings.dynamic_configs.groups == {}
