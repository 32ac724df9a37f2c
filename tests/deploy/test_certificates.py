"""deploy/kafka/make-certificates.sh: one CA, a certificate for each node, nothing made twice."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.deploy.deployment import DEPLOY, read_properties

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")

SCRIPT = DEPLOY / "kafka" / "make-certificates.sh"


def make(directory: Path, *hosts: str) -> None:
    subprocess.run([SCRIPT, directory, *hosts], check=True, capture_output=True)


def openssl(*arguments: str | Path) -> str:
    return subprocess.run(
        ["openssl", *arguments], check=True, capture_output=True, text=True
    ).stdout


def test_a_node_is_signed_by_the_ca_and_known_by_its_name_or_address(tmp_path: Path) -> None:
    make(tmp_path, "kafka-1.example.net", "127.0.0.1")

    for host, kind in (("kafka-1.example.net", "DNS"), ("127.0.0.1", "IP Address")):
        node = tmp_path / f"{host}.pem"
        assert openssl("verify", "-CAfile", tmp_path / "ca.pem", node).endswith("OK\n")
        names = openssl("x509", "-in", node, "-noout", "-ext", "subjectAltName")
        assert f"{kind}:{host}" in names


def test_a_certificate_has_the_name_that_the_mapping_rule_takes_for_a_node(tmp_path: Path) -> None:
    make(tmp_path, "kafka-1.example.net")

    subject = openssl(
        *("x509", "-in", tmp_path / "kafka-1.example.net.pem", "-noout"),
        *("-subject", "-nameopt", "RFC2253"),
    )

    rule = read_properties(DEPLOY / "kafka" / "broker.properties")["ssl.principal.mapping.rules"]
    assert rule.startswith("RULE:^CN=[^,]+,OU=kafka-nodes$/kafka-node/")
    assert subject.strip() == "subject=CN=kafka-1.example.net,OU=kafka-nodes"


def test_the_same_command_with_one_more_host_adds_it_and_keeps_the_rest(tmp_path: Path) -> None:
    make(tmp_path, "kafka-1.example.net")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.pem")}

    make(tmp_path, "kafka-1.example.net", "kafka-4.example.net")

    after = {path.name: path.read_bytes() for path in tmp_path.glob("*.pem")}
    assert before.items() < after.items()
    assert after.keys() - before.keys() == {"kafka-4.example.net.pem"}


def test_private_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    make(tmp_path, "kafka-1.example.net")

    for name in ("ca.key", "kafka-1.example.net.pem"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
