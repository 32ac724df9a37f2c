import pickle
from pathlib import Path

import pytest

from headrace.client.bus import Bus
from headrace.client.errors import PropertyError
from headrace.properties import Assignment


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_text("-----BEGIN CERTIFICATE-----\n")
    return path


def test_properties_in_javas_names_serve_both_clients(pem: Path) -> None:
    bus = Bus("a:1,b:2", {"ssl.truststore.location": str(pem)})

    assert bus.addresses == [("a", 1), ("b", 2)]
    assert bus.client_config({"client.id": "me"}) == {
        "bootstrap.servers": "a:1,b:2",
        "log_level": "0",
        "client.id": "me",
        "ssl.ca.location": str(pem),
    }
    assert bus.spark_options() == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.ssl.truststore.location": str(pem),
        "kafka.ssl.truststore.type": "PEM",
    }


def test_the_users_properties_win_over_ours() -> None:
    assert Bus(properties={"client.id": "theirs"}).client_config({"client.id": "ours"}) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "log_level": "0",
        "client.id": "theirs",
    }


def test_a_bus_is_made_from_a_file_and_an_address_given_beside_it_wins(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nsecurity.protocol=ssl\n")

    assert Bus.from_file(file).bootstrap == "file:1"
    assert Bus.from_file(file, "given:2").bootstrap == "given:2"
    assert "bootstrap.servers" not in Bus.from_file(file).properties


def test_what_cannot_work_is_told_with_the_place_it_was_written(tmp_path: Path) -> None:
    given = [Assignment("ssl.protocol", "TLSv1.3", "client.properties:7")]

    with pytest.raises(PropertyError, match=r"client.properties:7: ssl.protocol means nothing"):
        Bus.of(given)
    with pytest.raises(PropertyError, match=r"^ssl.protocol: ssl.protocol means nothing"):
        Bus(properties={"ssl.protocol": "TLSv1.3"})


def test_what_only_java_cannot_have_is_told_when_java_is_asked_for() -> None:
    bus = Bus(properties={"enable.ssl.certificate.verification": "false"})

    with pytest.raises(PropertyError, match="Java always verifies certificates"):
        bus.java_properties()


def test_readers_see_what_was_committed_unless_a_property_says_otherwise() -> None:
    dirty = Bus(properties={"isolation.level": "read_uncommitted"})

    assert (Bus().isolation_level, dirty.isolation_level) == ("read_committed", "read_uncommitted")


def test_a_bus_travels_to_workers() -> None:
    bus = Bus("a:1", {"client.id": "me"})

    assert pickle.loads(pickle.dumps(bus)) == bus
