"""A properties file written for Java's clients opens a broker with TLS and SASL."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.kafka.node import KafkaNode
from headrace.kafka.process import free_ports

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate"),
]


class Secured(NamedTuple):
    """A broker's SASL_SSL listener and the certificate it shows."""

    bootstrap: str
    certificate: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    key, certificate, store = (directory / name for name in ("key.pem", "cert.pem", "store.pem"))
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run(
        [*new, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    store.write_text(key.read_text() + certificate.read_text())
    plain, secure, controller = free_ports(3)
    clients = f"PLAINTEXT://127.0.0.1:{plain},SECURE://127.0.0.1:{secure}"
    settings = {
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": clients,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": ",".join(
            ("PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", "SECURE:SASL_SSL")
        ),
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f'{MODULE} required user_me="s e=cret";',
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(store),
    }
    with KafkaNode(directory / "node", port=plain, settings=settings):
        yield Secured(f"127.0.0.1:{secure}", certificate)


def run(secured: Secured, path: Path, password: str, *words: str, timeout_s: int = 120) -> Result:
    path.write_text(
        f"bootstrap.servers={secured.bootstrap}\n"
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} required \\\n  username="me" \\\n  password="{password}";\n'
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={secured.certificate}\n"
        "key.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n"
    )
    options = ["--client-config", str(path), "--timeout", str(timeout_s)]
    return CliRunner().invoke(app, [*words, *options], env={"HEADRACE_BOOTSTRAP": None})


def test_a_file_for_javas_clients_opens_the_broker(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"

    created = run(secured, file, "s e=cret", "topics", "create", "orders")
    listed = run(secured, file, "s e=cret", "topics", "list")
    cluster = run(secured, file, "s e=cret", "cluster")

    assert created.exit_code == 0, created.stderr
    assert listed.stdout.splitlines()[1].split() == ["orders", "1", "1", "0", "0", "B"]
    assert "API versions unknown" not in cluster.stdout
    assert "share groups" in cluster.stdout


def test_a_wrong_password_is_told_in_one_sentence(secured: Secured, tmp_path: Path) -> None:
    # librdkafka goes on trying with a wrong password, so all of this time is waited for.
    result = run(secured, tmp_path / "client.properties", "wrong", "topics", "list", timeout_s=10)

    assert result.exit_code == 1
    assert "uthentication failed" in result.stderr
    assert result.stderr.count("\n") == 1
