import pytest

from headrace.errors import ConfigError, InvalidConfigError, RequestError
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.errors import UnknownSettingError
from headrace.settings.rules import check_broker_update, check_client_metrics


def test_an_unknown_topic_setting_is_refused_in_kafkas_words() -> None:
    with pytest.raises(UnknownSettingError, match=r"^Unknown topic config name: no\.such$"):
        BrokerSettings.load().check_topic_configs({"no.such": "1"})


def test_a_brokers_name_is_not_a_topics() -> None:
    with pytest.raises(UnknownSettingError):
        BrokerSettings.load().check_topic_configs({"log.segment.bytes": "2097152"})


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"},
            "conflict topic config setting min.compaction.lag.ms (100) > "
            "max.compaction.lag.ms (50)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
        (
            {"segment.bytes": "1000"},
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
    ],
)
def test_a_topic_that_cannot_be_is_refused_in_kafkas_words(
    overrides: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        BrokerSettings.load().check_topic_configs(overrides)

    assert str(caught.value) == sentence


def test_a_topics_lag_is_checked_against_the_brokers_default() -> None:
    settings = BrokerSettings.load(overrides={"log.cleaner.max.compaction.lag.ms": "50"})

    with pytest.raises(InvalidConfigError, match="conflict"):
        settings.check_topic_configs({"min.compaction.lag.ms": "100"})


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"no.such": "1"}, "Unknown group config name: no.such"),
        (
            {"share.session.timeout.ms": "1"},
            "share.session.timeout.ms must be greater than or equal to "
            "group.share.min.session.timeout.ms",
        ),
        (
            {"share.session.timeout.ms": "99999999"},
            "share.session.timeout.ms must be less than or equal to "
            "group.share.max.session.timeout.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
    ],
)
def test_a_group_stays_within_the_brokers_bounds(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerSettings.load().check_group_configs(overrides)

    assert str(caught.value) == sentence


def test_a_group_must_send_heartbeats_within_its_session() -> None:
    settings = BrokerSettings.load(overrides={"group.consumer.max.heartbeat.interval.ms": "50000"})

    with pytest.raises(InvalidConfigError, match=r"must be greater than consumer\.heartbeat"):
        settings.check_group_configs({"consumer.heartbeat.interval.ms": "45000"})


@pytest.mark.parametrize(
    ("overrides", "is_default", "sentence"),
    [
        (
            {"num.partitions": "5", "node.id": "7", "log.segment.bytes": "4194304"},
            False,
            "Cannot update these configs dynamically: [node.id, num.partitions]",
        ),
        (
            {"headrace.acks.all.sync": "false"},
            False,
            "Cannot update these configs dynamically: [headrace.acks.all.sync]",
        ),
        (
            {"log.segment.bytes": "1000"},
            False,
            "Invalid value 1000 for configuration log.segment.bytes: "
            "Value must be at least 1048576",
        ),
        (
            {"ssl.keystore.password": "x"},
            False,
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix: [ssl.keystore.password]",
        ),
        (
            {"listeners": "PLAINTEXT://:1"},
            False,
            "Cannot update these configs dynamically: [listeners]",
        ),
        (
            {"sasl.jaas.config": "x"},
            True,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[sasl.jaas.config]",
        ),
        (
            {"listener.name.external.some.plug.in": "x"},
            True,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[listener.name.external.some.plug.in]",
        ),
    ],
)
def test_a_broker_setting_that_cannot_change_now_is_refused_in_kafkas_words(
    overrides: dict[str, str], is_default: bool, sentence: str
) -> None:
    with pytest.raises(RequestError) as caught:
        check_broker_update(overrides, is_default=is_default)

    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "overrides",
    [
        {"log.segment.bytes": "2097152"},
        {"some.plug.in": "x"},
        {"listener.name.plaintext.ssl.keystore.password": "x"},
        {"leader.replication.throttled.rate": "1000"},
    ],
)
def test_what_kafka_lets_change_may_change(overrides: dict[str, str]) -> None:
    check_broker_update(overrides, is_default=False)


@pytest.mark.parametrize(
    ("overrides", "kind", "sentence"),
    [
        ({"no.such": "1"}, RequestError, "Unknown client metrics configuration: no.such"),
        (
            {"interval.ms": "1"},
            RequestError,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            {"interval.ms": "abc"},
            InvalidConfigError,
            "Invalid value abc for configuration interval.ms: Not a number of type INT",
        ),
        ({"match": "foo=x"}, InvalidConfigError, "Illegal client matching pattern: foo=x"),
        (
            {"match": "client_id=("},
            InvalidConfigError,
            "Illegal client matching pattern: client_id=(",
        ),
    ],
)
def test_a_metrics_subscription_that_cannot_be_is_refused(
    overrides: dict[str, str], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        check_client_metrics(overrides)

    assert str(caught.value) == sentence


def test_a_metrics_subscription_takes_a_pattern_for_what_clients_tell_of_themselves() -> None:
    check_client_metrics({"match": "client_id=app.*,client_software_name=librdkafka"})
