import logging
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.static.primitive import i8
from tests.at_once import at_once

from headrace.broker.handlers.describe_configs import handle
from headrace.broker.state import BrokerState, RequestContext

DESCRIBE_CONFIGS = 32
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

Ask = Callable[..., Any]


def a_request(
    *resources: tuple[int, str],
    keys: tuple[str, ...] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=i8(kind), resource_name=name, configuration_keys=keys
            )
            for kind, name in resources
        ),
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def only(response: Any) -> Any:
    (result,) = response.results
    return result


def values(result: Any) -> dict[str, str | None]:
    return {config.name: config.value for config in result.configs}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_topic_shows_every_setting_at_every_version(
    broker: BrokerState, ask: Ask, version: int
) -> None:
    at_once(broker.topics.create("orders", 1, {"retention.ms": "99"}))

    result = only(ask(DESCRIBE_CONFIGS, a_request((TOPIC, "orders")), version))

    assert (result.error_code, result.error_message) == (0, "")
    assert len(result.configs) == 33
    (retention,) = [each for each in result.configs if each.name == "retention.ms"]
    assert (retention.value, retention.config_source, retention.read_only) == ("99", 1, False)
    if version >= 3:
        assert retention.config_type == 5


def test_the_broker_shows_every_setting(broker: BrokerState, ask: Ask) -> None:
    result = only(ask(DESCRIBE_CONFIGS, a_request((BROKER, str(broker.node_id)))))

    assert values(result)["num.partitions"] == "2"
    assert len(result.configs) >= 340


def test_only_the_keys_asked_for_are_shown_and_unknown_ones_are_passed_over(
    broker: BrokerState, ask: Ask
) -> None:
    at_once(broker.topics.create("orders", 1, {}))

    request = a_request((TOPIC, "orders"), keys=("segment.ms", "no.such"))

    assert values(only(ask(DESCRIBE_CONFIGS, request))) == {"segment.ms": "604800000"}


def test_an_empty_list_of_keys_asks_for_all(broker: BrokerState, ask: Ask) -> None:
    at_once(broker.topics.create("orders", 1, {}))

    assert len(only(ask(DESCRIBE_CONFIGS, a_request((TOPIC, "orders"), keys=()))).configs) == 33


def test_synonyms_and_documentation_come_only_when_asked_for(broker: BrokerState, ask: Ask) -> None:
    at_once(broker.topics.create("orders", 1, {"segment.bytes": "2097152"}))
    resource, keys = (TOPIC, "orders"), ("segment.bytes",)

    (plain,) = only(ask(DESCRIBE_CONFIGS, a_request(resource, keys=keys))).configs
    (full,) = only(
        ask(
            DESCRIBE_CONFIGS,
            a_request(resource, keys=keys, synonyms=True, documentation=True),
        )
    ).configs

    assert (plain.synonyms, plain.documentation) == ((), None)
    assert [(each.name, each.value, each.source) for each in full.synonyms] == [
        ("segment.bytes", "2097152", 1),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert full.documentation.startswith("Size at which")


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "nope", 3, ""),
        (TOPIC, "", 17, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "99", 42, "Unexpected broker id, expected 5 or empty string, but received 99"),
        (BROKER, "abc", 42, "Broker id must be an integer, but it is: abc"),
        (BROKER_LOGGER, "", 42, "Broker id must not be empty"),
        (BROKER_LOGGER, "7", 42, "Unexpected broker id, expected 5 but received 7"),
        (CLIENT_METRICS, "", 42, "Client metrics subscription name must not be empty"),
        (GROUP, "", 42, "Group name must not be empty"),
        (99, "x", 42, "Unknown resource type 99"),
    ],
)
def test_a_resource_that_is_not_there_gets_kafkas_error(
    ask: Ask, kind: int, name: str, code: int, message: str
) -> None:
    result = only(ask(DESCRIBE_CONFIGS, a_request((kind, name))))

    assert (result.error_code, result.error_message) == (code, message)
    assert (result.resource_type, result.resource_name, result.configs) == (kind, name, ())


def test_one_bad_resource_does_not_spoil_the_others(broker: BrokerState, ask: Ask) -> None:
    at_once(broker.topics.create("orders", 1, {}))

    response = ask(DESCRIBE_CONFIGS, a_request((TOPIC, "nope"), (TOPIC, "orders")))

    assert [result.error_code for result in response.results] == [3, 0]


def test_all_brokers_together_show_only_what_was_changed_for_them(
    broker: BrokerState, ask: Ask
) -> None:
    broker.settings.set_dynamic({"default:log.segment.bytes": "2097152"})

    result = only(ask(DESCRIBE_CONFIGS, a_request((BROKER, ""))))

    assert values(result) == {"log.segment.bytes": "2097152"}


def test_a_groups_and_a_subscriptions_settings_are_shown(broker: BrokerState, ask: Ask) -> None:
    broker.settings.set_dynamic(
        {"group:share.session.timeout.ms:g": "46000", "client-metrics:interval.ms:m": "5000"}
    )

    group = only(ask(DESCRIBE_CONFIGS, a_request((GROUP, "g"))))
    metrics = only(ask(DESCRIBE_CONFIGS, a_request((CLIENT_METRICS, "m"))))

    assert len(group.configs) == 17
    assert values(group)["share.session.timeout.ms"] == "46000"
    assert values(metrics) == {"interval.ms": "5000", "match": "", "metrics": ""}


def test_loggers_are_shown_with_kafkas_names_of_levels(broker: BrokerState, ask: Ask) -> None:
    logging.getLogger("headrace.shown").setLevel(logging.CRITICAL)

    result = only(ask(DESCRIBE_CONFIGS, a_request((BROKER_LOGGER, str(broker.node_id)))))

    assert values(result)["headrace.shown"] == "FATAL"
    assert "root" in values(result)
    assert {config.config_source for config in result.configs} == {6}


def test_topics_with_the_same_configs_share_what_was_made_for_one(broker: BrokerState) -> None:
    for name, configs in (("a", {}), ("b", {}), ("c", {"retention.ms": "5"}), ("d", {})):
        at_once(broker.topics.create(name, 1, configs))
    request = a_request(*((TOPIC, name) for name in "abcd"), (TOPIC, "a"))
    context = RequestContext(DESCRIBE_CONFIGS, 4, "", "")

    results = at_once(handle(request, broker, context)).results

    shared = [result.configs is results[0].configs for result in results]
    assert shared == [True, True, False, True, True]
    assert values(results[2])["retention.ms"] == "5"
