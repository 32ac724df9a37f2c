from pathlib import Path

import pytest

from headrace.client.errors import PropertyError
from headrace.client.java_names import java_properties
from headrace.client.librdkafka_names import translate
from headrace.properties import parse_properties

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def java(text: str) -> dict[str, str]:
    """What Java gets of properties as a user writes them, in either client's words."""
    return java_properties(translate(parse_properties(text, "client.properties")))


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_text("-----BEGIN CERTIFICATE-----\n")
    return path


def test_a_name_that_both_know_passes_unchanged() -> None:
    assert java("security.protocol=SSL\nclient.id=me") == {
        "security.protocol": "SSL",
        "client.id": "me",
    }


def test_a_name_of_librdkafkas_is_turned_back() -> None:
    assert java("fetch.wait.max.ms=100") == java("fetch.max.wait.ms=100")
    assert java("sasl.mechanisms=OAUTHBEARER")["sasl.mechanism"] == "OAUTHBEARER"


def test_what_concerns_librdkafka_or_groups_alone_is_left_out() -> None:
    assert java("debug=broker\nsocket.keepalive.enable=true\ngroup.id=g\n") == {}


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
def test_user_and_password_become_a_line_of_jaas(mechanism: str, module: str) -> None:
    text = f'sasl.mechanism={mechanism}\nsasl.username=me\nsasl.password=a"b\\\\c'

    assert java(text) == {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="me" password="a\\"b\\\\c";',
    }


def test_a_line_of_jaas_comes_back_as_it_was() -> None:
    line = f'{SCRAM} required username="me" password="secret";'

    properties = java(f"sasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={line}")

    assert properties["sasl.jaas.config"] == line
    assert "sasl.password" not in properties


def test_a_ca_is_a_pem_truststore(pem: Path) -> None:
    assert java(f"ssl.ca.location={pem}") == {
        "ssl.truststore.location": str(pem),
        "ssl.truststore.type": "PEM",
    }


def test_certificate_and_key_are_a_pem_keystore(tmp_path: Path, pem: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----\n")

    assert java(f"ssl.certificate.location={pem}\nssl.key.location={key}") == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": pem.read_text(),
        "ssl.keystore.key": key.read_text(),
    }


def test_a_host_name_that_is_not_checked_is_an_empty_word_in_java() -> None:
    name = "ssl.endpoint.identification.algorithm"

    assert java(f"{name}=none") == {name: ""}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sasl.mechanism=PLAIN\nsasl.username=me", "PLAIN needs sasl.password"),
        ("sasl.mechanism=GSSAPI", "GSSAPI is not passed on to Spark"),
        ("ssl.ca.location=/no/such", "/no/such is no file"),
        ("ssl.key.location=/no/such", "ssl.key.location needs ssl.certificate.location"),
        ("enable.ssl.certificate.verification=false", "Java always verifies"),
    ],
)
def test_what_java_cannot_have_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(PropertyError, match=sentence):
        java(text)


def test_a_key_that_java_cannot_read_is_refused_with_the_fix(tmp_path: Path, pem: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN RSA PRIVATE KEY-----\n")

    with pytest.raises(PropertyError, match="openssl pkcs8 -topk8"):
        java(f"ssl.certificate.location={pem}\nssl.key.location={key}")
