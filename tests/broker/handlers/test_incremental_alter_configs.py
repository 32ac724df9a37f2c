import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8
from tests.at_once import at_once

from headrace.broker.state import BrokerState
from headrace.log.errors import StorageError
from headrace.log.producer_state import ProducerEntry

INCREMENTAL_ALTER_CONFIGS = 44
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
NODE = "5"
NOW_MS = 1_700_000_000_000

Ask = Callable[..., Any]
Edit = tuple[str, int, str | None]


def a_request(
    kind: int, name: str, *edits: Edit, validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    resource = AlterConfigsResource(
        resource_type=i8(kind),
        resource_name=name,
        configs=tuple(
            AlterableConfig(name=key, config_operation=i8(operation), value=value)
            for key, operation, value in edits
        ),
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


@pytest.fixture
def alter(ask: Ask) -> Callable[..., tuple[int, str | None]]:
    def alter(*args: Any, **options: Any) -> tuple[int, str | None]:
        response = ask(INCREMENTAL_ALTER_CONFIGS, a_request(*args, **options))
        (result,) = response.responses
        return int(result.error_code), result.error_message

    return alter


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("headrace.altered")
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("version", [0, 1])
def test_single_overrides_are_set_and_removed_at_every_version(
    broker: BrokerState, ask: Ask, version: int
) -> None:
    at_once(broker.topics.create("t", 1, {"retention.ms": "1", "flush.ms": "2"}))

    request = a_request(TOPIC, "t", ("flush.ms", DELETE, None), ("segment.ms", SET, "3"))
    response = ask(INCREMENTAL_ALTER_CONFIGS, request, version)

    assert [int(each.error_code) for each in response.responses] == [0]
    assert broker.topics.get("t").configs == {"retention.ms": "1", "segment.ms": "3"}


def test_an_open_log_follows_its_topic(broker: BrokerState, alter: Any) -> None:
    at_once(broker.topics.create("t", 1, {}))
    log = broker.topics.log("t", 0)

    alter(TOPIC, "t", ("segment.bytes", SET, "2097152"))

    assert log.config.segment_bytes == 2097152


def test_a_list_grows_and_shrinks_from_what_is_in_force(broker: BrokerState, alter: Any) -> None:
    at_once(broker.topics.create("t", 1, {}))

    assert alter(TOPIC, "t", ("cleanup.policy", APPEND, "compact,delete")) == (0, None)
    assert broker.topics.get("t").configs == {"cleanup.policy": "delete,compact"}
    assert alter(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert broker.topics.get("t").configs == {"cleanup.policy": "compact"}


def test_one_bad_config_keeps_the_resource_as_it_was(broker: BrokerState, alter: Any) -> None:
    at_once(broker.topics.create("t", 1, {}))

    code, _ = alter(TOPIC, "t", ("retention.ms", SET, "5"), ("segment.bytes", SET, "1"))

    assert code == 40
    assert broker.topics.get("t").configs == {}


def test_validate_only_changes_nothing(broker: BrokerState, alter: Any) -> None:
    at_once(broker.topics.create("t", 1, {}))

    assert alter(TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True) == (0, None)
    assert alter(BROKER, NODE, ("message.max.bytes", SET, "5"), validate_only=True) == (0, None)
    assert alter(GROUP, "g", ("share.isolation.level", DELETE, None), validate_only=True)[0] == 0
    assert broker.topics.get("t").configs == {}
    assert broker.settings.dynamic == {}


@pytest.mark.parametrize(
    ("kind", "name", "edit", "code", "message"),
    [
        (TOPIC, "nope", ("retention.ms", SET, "1"), 3, "The topic 'nope' does not exist."),
        (TOPIC, "t", ("no.such", SET, "1"), 40, "Unknown topic config name: no.such"),
        (TOPIC, "t", ("no.such", DELETE, None), 0, None),
        (
            TOPIC,
            "t",
            ("retention.ms", SET, None),
            42,
            "Null value not supported for : retention.ms",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", APPEND, "5"),
            40,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (TOPIC, "t", ("retention.ms", 9, "5"), 42, "Unknown operation 9 for config retention.ms"),
        (
            BROKER,
            NODE,
            ("num.partitions", SET, "5"),
            42,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            BROKER,
            NODE,
            ("log.segment.bytes", SET, "abc"),
            42,
            "Invalid value abc for configuration log.segment.bytes: Not a number of type INT",
        ),
        (
            BROKER,
            NODE,
            ("log.segment.bytes", APPEND, "1"),
            40,
            "Config value append is not allowed for config key: log.segment.bytes",
        ),
        (
            BROKER,
            "",
            ("sasl.jaas.config", SET, "x"),
            42,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[sasl.jaas.config]",
        ),
        (
            BROKER,
            NODE,
            ("ssl.client.auth", SET, "required"),
            42,
            "These settings would not be honoured, because there is no TLS, SASL, authorizer or "
            "policy in headrace yet: [ssl.client.auth]",
        ),
        (
            BROKER,
            NODE,
            ("authorizer.class.name", SET, "x"),
            42,
            "Cannot update these configs dynamically: [authorizer.class.name]",
        ),
        (GROUP, "g", ("no.such", SET, "1"), 40, "Unknown group config name: no.such"),
        (
            CLIENT_METRICS,
            "m",
            ("no.such", SET, "1"),
            42,
            "Unknown client metrics configuration: no.such",
        ),
        (BROKER_LOGGER, NODE, ("no.such", SET, "INFO"), 40, "Logger no.such does not exist!"),
        (
            BROKER_LOGGER,
            NODE,
            ("root", APPEND, "INFO"),
            42,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (BROKER_LOGGER, "", ("root", SET, "INFO"), 42, "Node id must be an integer, but it is: "),
        (
            BROKER_LOGGER,
            "9",
            ("root", SET, "INFO"),
            42,
            "Unexpected node id. Expected 5, but received 9",
        ),
        (99, "t", ("x", SET, "1"), 42, "Unknown resource type 99"),
    ],
)
def test_each_edit_gets_the_answer_kafka_gives(
    broker: BrokerState,
    alter: Any,
    kind: int,
    name: str,
    edit: Edit,
    code: int,
    message: str | None,
) -> None:
    at_once(broker.topics.create("t", 1, {}))

    assert alter(kind, name, edit) == (code, message)
    assert broker.topics.get("t").configs == {}
    assert broker.settings.dynamic == {}


def test_a_changed_broker_setting_reaches_open_logs_and_the_catalog(
    broker: BrokerState, alter: Any
) -> None:
    at_once(broker.topics.create("t", 1, {}))
    log = broker.topics.log("t", 0)

    assert alter(BROKER, "", ("log.segment.bytes", SET, "3145728")) == (0, None)
    assert log.config.segment_bytes == 3145728
    assert alter(BROKER, NODE, ("log.segment.bytes", SET, "2097152")) == (0, None)
    assert log.config.segment_bytes == 2097152
    assert broker.topics.catalog.broker_configs() == {
        "default:log.segment.bytes": "3145728",
        "log.segment.bytes": "2097152",
    }
    assert alter(BROKER, NODE, ("log.segment.bytes", DELETE, None)) == (0, None)
    assert log.config.segment_bytes == 3145728


def test_producers_are_forgotten_after_what_the_setting_says_now(
    broker: BrokerState, alter: Any
) -> None:
    at_once(broker.topics.create("open", 1, {}))
    at_once(broker.topics.create("later", 1, {}))
    log = broker.topics.log("open", 0)
    log.producers.entries[7] = ProducerEntry(0, (), NOW_MS)
    at_once(broker.topics.enforce_retention(NOW_MS + 2000))
    assert set(log.producers.entries) == {7}

    assert alter(BROKER, "", ("producer.id.expiration.ms", SET, "2000")) == (0, None)
    at_once(broker.topics.enforce_retention(NOW_MS + 2000))

    assert log.producers.entries == {}
    assert broker.topics.log("later", 0).producer_expiration_ms == 2000
    assert alter(BROKER, "", ("producer.id.expiration.ms", DELETE, None)) == (0, None)
    assert log.producer_expiration_ms == 86_400_000


def test_a_change_that_cannot_be_stored_does_not_act(
    broker: BrokerState, alter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(configs: dict[str, str]) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(broker.topics.catalog, "set_broker_configs", refuse)

    assert alter(BROKER, NODE, ("message.max.bytes", SET, "5")) == (56, "no room")
    assert not broker.settings.is_set("message.max.bytes")


def test_a_plug_ins_setting_is_taken_as_kafka_takes_it(broker: BrokerState, alter: Any) -> None:
    assert alter(BROKER, NODE, ("some.plug.in", SET, "x")) == (0, None)
    assert broker.settings.dynamic == {"some.plug.in": "x"}


def test_a_loggers_level_changes_and_returns_to_its_parents(
    alter: Any, logger: logging.Logger
) -> None:
    name = logger.name

    assert alter(BROKER_LOGGER, NODE, (name, SET, "ERROR"), validate_only=True) == (0, None)
    assert logger.level == logging.NOTSET
    assert alter(BROKER_LOGGER, NODE, (name, SET, "ERROR")) == (0, None)
    assert logger.level == logging.ERROR
    assert alter(BROKER_LOGGER, NODE, (name, DELETE, None)) == (0, None)
    assert logger.level == logging.NOTSET


def test_a_level_that_is_none_is_refused(alter: Any, logger: logging.Logger) -> None:
    code, message = alter(BROKER_LOGGER, NODE, (logger.name, SET, "LOUD"))

    assert code == 40
    assert message is not None
    assert message.endswith("Valid log levels are TRACE, DEBUG, INFO, WARN, ERROR, FATAL")


def test_the_root_loggers_level_cannot_be_removed(alter: Any) -> None:
    assert alter(BROKER_LOGGER, NODE, ("root", DELETE, None))[0] == 42
