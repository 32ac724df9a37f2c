from pathlib import Path

import pytest

from headrace.client.errors import PropertyError
from headrace.client.librdkafka_names import translate
from headrace.properties import parse_properties

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def translated(text: str) -> dict[str, str]:
    return {
        each.name: each.value for each in translate(parse_properties(text, "client.properties"))
    }


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    path.write_text("-----BEGIN CERTIFICATE-----\n")
    return path


def test_a_name_that_both_know_passes_unchanged() -> None:
    assert translated("security.protocol=SSL\nacks=all\ndebug=broker") == {
        "security.protocol": "SSL",
        "acks": "all",
        "debug": "broker",
    }


@pytest.mark.parametrize("module", [PLAIN, SCRAM])
@pytest.mark.parametrize(
    "options", ['username="me" password="s e=c"', "password='s e=c'   username=me"]
)
def test_a_login_module_becomes_user_name_and_password(module: str, options: str) -> None:
    assert translated(f"sasl.jaas.config={module} required {options};") == {
        "sasl.username": "me",
        "sasl.password": "s e=c",
    }


def test_a_quote_in_a_password_is_unescaped() -> None:
    line = rf'sasl.jaas.config={PLAIN} required username="me" password="a\\"b";'

    assert translated(line)["sasl.password"] == 'a"b'


def test_an_oauth_module_becomes_the_oidc_properties() -> None:
    assert translated(f'sasl.jaas.config={OAUTH} required clientId="i" clientSecret="s";') == {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "i",
        "sasl.oauthbearer.client.secret": "s",
    }


def test_a_pem_truststore_is_the_ca(pem: Path) -> None:
    assert translated(f"ssl.truststore.location={pem}") == {"ssl.ca.location": str(pem)}
    assert translated("ssl.truststore.type=PEM\nssl.truststore.location=/absent") == {
        "ssl.ca.location": "/absent"
    }


def test_a_pem_keystore_is_certificate_and_key(pem: Path) -> None:
    assert translated(f"ssl.keystore.location={pem}\nssl.key.password=x") == {
        "ssl.certificate.location": str(pem),
        "ssl.key.location": str(pem),
        "ssl.key.password": "x",
    }


def test_a_pkcs12_keystore_passes_unchanged() -> None:
    text = "ssl.keystore.type=PKCS12\nssl.keystore.location=/k\nssl.keystore.password=x"

    assert translated(text) == {"ssl.keystore.location": "/k", "ssl.keystore.password": "x"}


def test_an_empty_identification_algorithm_is_none() -> None:
    assert translated("ssl.endpoint.identification.algorithm=") == {
        "ssl.endpoint.identification.algorithm": "none"
    }


def test_names_that_differ_are_renamed_and_java_code_is_left_out() -> None:
    text = "fetch.max.wait.ms=5\nkey.serializer=x.Y\nsend.buffer.bytes=7"

    assert translated(text) == {"fetch.wait.max.ms": "5", "socket.send.buffer.bytes": "7"}


def test_assignors_have_librdkafkas_names() -> None:
    prefix = "org.apache.kafka.clients.consumer"
    value = f"{prefix}.CooperativeStickyAssignor,{prefix}.RangeAssignor"

    assert translated(f"partition.assignment.strategy={value}") == {
        "partition.assignment.strategy": "cooperative-sticky,range"
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\nssl.protocol=TLSv1.3", "client.properties:2: ssl.protocol means nothing"),
        ("buffer.memory=1", "use queue.buffering.max.kbytes"),
        ("ssl.truststore.type=JKS\nssl.truststore.location=/t", "ssl.ca.location"),
        ("ssl.keystore.type=JKS\nssl.keystore.location=/k", "PKCS12"),
        ("ssl.truststore.location=/absent", "cannot read /absent"),
        (f'sasl.jaas.config={PLAIN} required username="me";', "lacks password"),
        ("sasl.jaas.config=whatever", "not of the form"),
        ("sasl.jaas.config=com.sun.Krb5LoginModule required useKeyTab=true;", "sasl.kerberos"),
    ],
)
def test_what_cannot_be_translated_names_the_line_and_the_way_out(text: str, wanted: str) -> None:
    with pytest.raises(PropertyError, match=r"client\.properties:") as caught:
        translated(text)

    assert wanted in str(caught.value)


def test_a_java_truststore_is_told_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "store.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed")

    with pytest.raises(PropertyError, match="reads no Java truststore"):
        translated(f"ssl.truststore.location={path}")
