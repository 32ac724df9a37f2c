import re
from pathlib import Path

import pytest

from headrace.errors import ConfigError, RequestError
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.security import is_about_security, refuse_at_run_time

DEPLOY = Path(__file__).parents[2] / "deploy" / "kafka"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("listeners=SSL://127.0.0.1:9093", [1]),
        ("listeners=SASL_SSL://:9093", [1]),
        ("num.partitions=2\nlisteners=PLAINTEXT://127.0.0.1:9092,SASL_PLAINTEXT://:9093", [2]),
        (
            "listeners=IN://127.0.0.1:9092,OUT://:9093\n"
            "listener.security.protocol.map=IN:PLAINTEXT,OUT:SASL_SSL",
            [1, 2],
        ),
        ("listeners=out://:9093\nlistener.security.protocol.map=Out:ssl", [1, 2]),
        ("listener.security.protocol.map=PLAINTEXT:SSL", [1]),
        ("listeners=PLAINTEXT://127.0.0.1:9092\nadvertised.listeners=SSL://db:9093", [2]),
        ("security.inter.broker.protocol=SASL_SSL", [1]),
        ("inter.broker.listener.name=SSL", [1]),
        (f"authorizer.class.name={AUTHORIZER}", [1]),
        ("ssl.client.auth=required", [1]),
        ("ssl.client.auth=requested", [1]),
        ("listener.name.internal.ssl.client.auth=required", [1]),
        ("create.topic.policy.class.name=com.example.Names", [1]),
        ("alter.config.policy.class.name=com.example.Values", [1]),
        (f"ssl.client.auth=required\n\nauthorizer.class.name={AUTHORIZER}", [1, 3]),
    ],
)
def test_a_file_that_asks_for_security_is_refused_with_every_line_that_does(
    file: Path, text: str, lines: list[int]
) -> None:
    file.write_text(text)

    with pytest.raises(ConfigError) as refused:
        BrokerSettings.load(file=file)

    written = text.splitlines()
    for line in lines:
        assert f"{file}:{line}: {written[line - 1]}" in str(refused.value)
    named = re.findall(rf"{re.escape(str(file))}:(\d+): ", str(refused.value))
    assert sorted(map(int, named)) == lines
    assert "listeners=PLAINTEXT://127.0.0.1:9092" in str(refused.value)
    assert "headrace kafka up" in str(refused.value)


def test_it_is_refused_by_whatever_way_it_comes_in() -> None:
    with pytest.raises(ConfigError, match=f"HEADRACE_AUTHORIZER_CLASS_NAME={AUTHORIZER}"):
        BrokerSettings.load(env={"HEADRACE_AUTHORIZER_CLASS_NAME": AUTHORIZER})
    with pytest.raises(ConfigError, match=r"--set ssl\.client\.auth=required"):
        BrokerSettings.load(overrides={"ssl.client.auth": "required"})


def test_a_line_that_a_stronger_source_overrules_asks_for_nothing(file: Path) -> None:
    file.write_text(f"listeners=SSL://:9093\nauthorizer.class.name={AUTHORIZER}\n")

    settings = BrokerSettings.load(
        file=file,
        overrides={"listeners": "PLAINTEXT://127.0.0.1:0", "authorizer.class.name": ""},
    )

    assert settings.list("listeners") == ["PLAINTEXT://127.0.0.1:0"]


@pytest.mark.parametrize(
    "text",
    [
        # As Kafka ships it: a map for every protocol, and plain listeners.
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        # No controller's port is opened here, so nothing is missing at it.
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
        "authorizer.class.name=",
        "ssl.client.auth=none",
        "security.inter.broker.protocol=PLAINTEXT",
    ],
)
def test_a_file_that_asks_for_none_is_taken_without_a_word(file: Path, text: str) -> None:
    file.write_text(text)

    assert BrokerSettings.load(file=file).warnings == ()


def test_what_has_no_effect_in_kafka_either_is_named_in_one_warning(file: Path) -> None:
    file.write_text(
        "ssl.keystore.location=/etc/kafka.jks\nsuper.users=User:admin\n"
        "sasl.enabled.mechanisms=PLAIN\nlistener.name.out.plain.sasl.jaas.config=x\n"
    )

    (warning,) = BrokerSettings.load(file=file).warnings

    assert f"ssl.keystore.location ({file}:1)" in warning
    assert f"listener.name.out.plain.sasl.jaas.config ({file}:4)" in warning
    assert "super.users" in warning
    assert "sasl.enabled.mechanisms" in warning


def test_the_secured_files_of_this_repository_do_not_start_an_open_broker() -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerSettings.load(file=DEPLOY / "broker.properties")

    for name in (
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "listener.name.internal.ssl.client.auth",
        "authorizer.class.name",
    ):
        assert re.search(rf"broker\.properties:\d+: {re.escape(name)}=", str(refused.value)), name
    with pytest.raises(ConfigError, match=r"controller\.properties:\d+: authorizer\.class\.name="):
        BrokerSettings.load(file=DEPLOY / "controller.properties")


@pytest.mark.parametrize(
    "name",
    [
        "ssl.client.auth",
        "listener.name.plaintext.ssl.keystore.location",
        "listener.name.plaintext.plain.sasl.jaas.config",
        "sasl.enabled.mechanisms",
        "principal.builder.class",
        "super.users",
        "allow.everyone.if.no.acl.found",
        "authorizer.class.name",
    ],
)
def test_no_such_setting_is_taken_at_run_time(name: str) -> None:
    assert is_about_security(name)
    with pytest.raises(RequestError, match=rf"would not be honoured.*\[{re.escape(name)}\]"):
        refuse_at_run_time(["log.retention.ms", name])


@pytest.mark.parametrize(
    "name", ["log.retention.ms", "listener.name.plaintext.max.connections", "max.connections"]
)
def test_other_settings_are_none_of_it(name: str) -> None:
    assert not is_about_security(name)
    refuse_at_run_time([name])
