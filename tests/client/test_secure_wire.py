"""A real Apache Kafka with TLS, with passwords and with both, asked what librdkafka cannot."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.certificates import make_certificates

from headrace.client.admin import Admin
from headrace.client.broker_questions import api_versions, log_sizes
from headrace.client.bus import Bus
from headrace.client.cluster_questions import quorum
from headrace.client.errors import BusError
from headrace.client.wire import WireConnection
from headrace.kafka.layout import HOST
from headrace.kafka.node import KafkaNode
from headrace.kafka.process import free_ports

pytestmark = pytest.mark.java

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
# What a name and a password may hold: SCRAM writes these two otherwise than the rest.
ALICE, SECRET = "alice=a,b", "s3cret, with = and ü"
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class SecureNode(NamedTuple):
    """A node that listens four ways."""

    plain: str
    sasl: str
    sasl_tls: str
    tls: str  # wants a certificate of its clients, too
    certificates: Path


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    directory = tmp_path_factory.mktemp("secure")
    certificates = directory / "certificates"
    make_certificates(certificates)
    plain, controller, sasl, sasl_tls, tls = free_ports(5)
    listeners = ",".join(
        f"{name}://{HOST}:{port}"
        for name, port in [("PLAINTEXT", plain), ("SASL", sasl), ("BOTH", sasl_tls), ("TLS", tls)]
    )
    settings = {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,BOTH:SASL_SSL,TLS:SSL"
        ),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.tls.ssl.client.auth": "required",
    }
    for name in ("sasl", "both"):
        login = f'{PLAIN_MODULE} user_{ALICE.partition("=")[0]}="{SECRET}";'
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = login
        for mechanism in MECHANISMS[1:]:
            option = f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"
            settings[option] = SCRAM_MODULE
    for name in ("both", "tls"):
        settings |= {
            f"listener.name.{name}.ssl.keystore.type": "PEM",
            f"listener.name.{name}.ssl.keystore.location": str(certificates / "broker.pem"),
            f"listener.name.{name}.ssl.truststore.type": "PEM",
            f"listener.name.{name}.ssl.truststore.location": str(certificates / "ca.pem"),
        }
    with KafkaNode(directory / "kafka", port=plain, settings=settings):
        give_passwords(f"{HOST}:{plain}")
        ports = (plain, sasl, sasl_tls, tls)
        yield SecureNode(*(f"{HOST}:{port}" for port in ports), certificates)


def give_passwords(bootstrap: str) -> None:
    from confluent_kafka.admin import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = Admin(Bus(bootstrap), timeout_s=120)
    admin.create_topic("numbers", 1)
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        wish = UserScramCredentialUpsertion(
            ALICE, ScramCredentialInfo(mechanism, 4096), SECRET.encode()
        )
        admin.raw.alter_user_scram_credentials([wish])[ALICE].result(120)


def login(mechanism: str, password: str = SECRET) -> dict[str, str]:
    user = ALICE.partition("=")[0] if mechanism == "PLAIN" else ALICE
    return {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}


def both_bus(node: SecureNode, mechanism: str, password: str = SECRET, **more: str) -> Bus:
    trust = {"ssl.ca.location": str(node.certificates / "ca.pem"), **more}
    properties = {"security.protocol": "SASL_SSL", **login(mechanism, password), **trust}
    return Bus(node.sasl_tls, properties)


def tls_bus(node: SecureNode, ca: str = "ca.pem", **more: str) -> Bus:
    trust = {"ssl.ca.location": str(node.certificates / ca)}
    return Bus(node.tls, {"security.protocol": "ssl", **trust, **more})


def identity(node: SecureNode) -> dict[str, str]:
    files = {"ssl.certificate.location": "client.crt", "ssl.key.location": "client.key"}
    return {name: str(node.certificates / file) for name, file in files.items()}


def connect(bus: Bus, timeout_s: float = 120) -> WireConnection:
    return WireConnection(bus.addresses[0], bus, timeout_s)


def assert_answers(bus: Bus) -> None:
    with connect(bus) as connection:
        assert api_versions(connection)[18][1] >= 4
        assert ("numbers", 0) in log_sizes(connection)
    assert quorum(bus, 120).leader == 1


def refusal(bus: Bus) -> BusError:
    with pytest.raises(BusError) as caught:
        connect(bus).close()
    assert not caught.value.is_passing
    return caught.value


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_versions_sizes_and_quorum_are_told_by_password_over_tls(
    node: SecureNode, mechanism: str
) -> None:
    assert_answers(both_bus(node, mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_versions_sizes_and_quorum_are_told_by_password_alone(
    node: SecureNode, mechanism: str
) -> None:
    assert_answers(Bus(node.sasl, {"security.protocol": "SASL_PLAINTEXT", **login(mechanism)}))


def test_a_client_s_certificate_logs_on(node: SecureNode) -> None:
    assert_answers(tls_bus(node, **identity(node)))


def test_certificates_may_be_given_as_text(node: SecureNode) -> None:
    names = {
        "ssl.ca.pem": "ca.pem",
        "ssl.certificate.pem": "client.crt",
        "ssl.key.pem": "client.key",
    }
    texts = {name: (node.certificates / file).read_text() for name, file in names.items()}

    assert_answers(Bus(node.tls, {"security.protocol": "SSL", **texts}))


def test_a_key_may_have_a_password(node: SecureNode) -> None:
    from tests.support.certificates import openssl

    sealed = node.certificates / "sealed.key"
    key = ("-in", node.certificates / "client.key", "-out", sealed)
    openssl("pkcs8", "-topk8", *key, "-passout", "pass:open")
    mine = {**identity(node), "ssl.key.location": str(sealed)}

    assert_answers(tls_bus(node, **mine, **{"ssl.key.password": "open"}))
    assert "ssl.key.location: " in str(refusal(tls_bus(node, **mine)))


def test_the_admin_tells_versions_and_sizes_of_a_bus_with_a_log_on(node: SecureNode) -> None:
    admin = Admin(both_bus(node, "SCRAM-SHA-512"), timeout_s=120)
    assert (admin.api_versions() or {})[18][1] >= 4
    assert ("numbers", 0) in admin.log_sizes()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_with_the_mechanism(node: SecureNode, mechanism: str) -> None:
    said = str(refusal(both_bus(node, mechanism, "guess")))

    assert said.startswith(f"{node.sasl_tls}: the log-on by {mechanism} failed: Authentication")


def test_a_mechanism_that_the_broker_does_not_take_is_told(node: SecureNode) -> None:
    taken = Bus(node.sasl, {"security.protocol": "SASL_PLAINTEXT", **login("PLAIN")})
    bus = Bus(node.sasl, {**taken.properties, "sasl.mechanism": "OAUTHBEARER"})

    assert "cannot be asked by OAUTHBEARER; PLAIN, SCRAM-SHA-256" in str(refusal(bus))


def test_a_stranger_s_certificate_is_refused(node: SecureNode) -> None:
    said = str(refusal(tls_bus(node, "other-ca.pem", **identity(node))))

    assert "certificate verify failed" in said


def test_another_host_s_certificate_is_refused_unless_the_user_says_otherwise(
    node: SecureNode,
) -> None:
    bus = tls_bus(node, **identity(node))
    elsewhere = ("localhost", bus.addresses[0][1])  # the certificate names an address
    lax = tls_bus(node, **identity(node), **{"ssl.endpoint.identification.algorithm": "none"})
    blind = tls_bus(
        node, "other-ca.pem", **identity(node), **{"enable.ssl.certificate.verification": "false"}
    )

    with pytest.raises(BusError, match="certificate verify failed"):
        WireConnection(elsewhere, bus, 120)
    with WireConnection(elsewhere, lax, 120) as connection:
        assert api_versions(connection)
    assert_answers(blind)


def test_a_client_without_a_certificate_is_refused(node: SecureNode) -> None:
    with pytest.raises(BusError) as caught, connect(tls_bus(node)) as connection:
        api_versions(connection)

    assert not caught.value.is_passing


def test_tls_to_who_has_none_is_told(node: SecureNode) -> None:
    bus = Bus(node.plain, {"security.protocol": "SSL"})

    with pytest.raises(BusError) as caught:
        connect(bus)

    assert node.plain in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with socket.create_server((HOST, 0)) as listener:
        bus = Bus(
            f"{HOST}:{listener.getsockname()[1]}",
            {"security.protocol": "SSL", "ssl.ca.location": "absent.pem"},
        )

        assert str(refusal(bus)) == "ssl.ca.location: No such file or directory"


def test_who_takes_the_connection_and_says_nothing_is_a_timeout() -> None:
    with socket.create_server((HOST, 0)) as listener:
        bus = Bus(f"{HOST}:{listener.getsockname()[1]}", {"security.protocol": "SSL"})

        with pytest.raises(BusError) as caught:
            connect(bus, 0.2)

    assert caught.value.is_timeout
