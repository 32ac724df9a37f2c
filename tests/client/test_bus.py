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


SECRETS = {
    "sasl.password": "hunter2",
    "ssl.key.pem": "-----BEGIN hunter2",
    "ssl.key.password": "hunter2",
    "sasl.oauthbearer.client.secret": "hunter2",
}


def test_no_secret_is_shown() -> None:
    shown = repr(Bus("a:1", {**SECRETS, "sasl.username": "me"}))

    assert "hunter2" not in shown
    assert shown.startswith("Bus('a:1', {'sasl.password': '***'")
    assert "'sasl.username': 'me'" in shown
    assert repr(Bus("a:1")) == "Bus('a:1')"


def test_a_url_names_addresses_a_user_and_properties() -> None:
    bus = Bus.from_url("kafka://me:p%40ss%2F@a,b:19092,[::1]:1?client.id=one%20two")

    assert bus.addresses == [("a", 9092), ("b", 19092), ("::1", 1)]
    assert bus.properties == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "p@ss/",
        "client.id": "one two",
    }
    assert Bus.from_url("kafka://a").client_config()["bootstrap.servers"] == "a:9092"
    assert Bus.from_url("kafka://[::1]").addresses == [("::1", 9092)]
    assert Bus.from_url("Kafka://a:1/") == Bus("a:1")


def test_a_url_that_says_how_to_log_on_is_obeyed() -> None:
    bus = Bus.from_url(
        "kafka://me:x@a?sasl.mechanism=SCRAM-SHA-512&security.protocol=SASL_PLAINTEXT"
    )

    assert bus.properties["sasl.mechanism"] == "SCRAM-SHA-512"
    assert bus.properties["security.protocol"] == "SASL_PLAINTEXT"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://a:1", "http://a:1 cannot be read: a bus's URL begins with kafka://"),
        ("a:9092", "begins with kafka://"),
        ("kafka://a:port", "kafka://a:port cannot be read: write HOST or HOST:PORT"),
        ("kafka://", "write HOST or HOST:PORT"),
        ("kafka://a,,b", "write HOST or HOST:PORT"),
        ("kafka://a:99999", "write HOST or HOST:PORT"),
        ("kafka://a/topic", "nothing but [?]property=value may follow"),
        ("kafka://a?acks", "write [?]property=value"),
        ("kafka://a?acks=1&acks=2", "acks stands in it twice"),
        ("kafka://me:hunter2@a?sasl.password=hunter2", "sasl.password stands in it twice"),
        ("kafka://me@a", "write USER:PASSWORD before the @"),
        ("kafka://:hunter2@a", "write USER:PASSWORD before the @"),
        # A password that was not written as a URL has to.
        ("kafka://me:hun/ter2@a:b", r"kafka://\*\*\*@a:b cannot be read.*%2F"),
        ("kafka://me:hunter2?x@a:1", r"kafka://\*\*\*@a:1 cannot be read"),
        ("kafka://me:hunter2#x@a:1", "may follow"),
        ("kafka://a:b?sasl.password=hunter2&acks=1", r"sasl.password=\*\*\*&acks=1 cannot"),
        ("kafka://a?ssl.protocol=hunter2", "URL, ssl.protocol: ssl.protocol means nothing"),
    ],
)
def test_a_url_that_cannot_work_is_told_without_its_secrets(url: str, sentence: str) -> None:
    with pytest.raises(PropertyError, match=sentence) as refused:
        Bus.from_url(url)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_the_environment_names_addresses_or_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_BOOTSTRAP", raising=False)
    assert Bus.from_environment() == Bus()
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "a:1,b:2")
    assert Bus.from_environment() == Bus("a:1,b:2")
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "kafka://me:hunter2@a:1")
    assert Bus.from_environment().properties["sasl.password"] == "hunter2"
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "kafka://me:hunter2@a:b")
    with pytest.raises(PropertyError, match=r"^HEADRACE_BOOTSTRAP: kafka://"):
        Bus.from_environment()
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "nowhere")
    with pytest.raises(PropertyError, match="HEADRACE_BOOTSTRAP nowhere: write HOST:PORT"):
        Bus.from_environment()


@pytest.mark.parametrize("written", ["SASL_SSL://alice:s3cret@host:1", "alice:s3cret@h"])
def test_a_password_before_an_address_is_refused_wherever_it_is_written(
    written: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={written}\n")
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", written)

    for make in (lambda: Bus(written), Bus.from_environment, lambda: Bus.from_file(file)):
        with pytest.raises(PropertyError, match="kafka://USER:PASSWORD@HOST") as caught:
            make()
        assert "s3cret" not in f"{caught.value} {vars(caught.value)}"


def test_what_is_no_url_shows_no_password_either() -> None:
    with pytest.raises(PropertyError, match=r"begins with kafka://") as caught:
        Bus.from_url("kafka:/alice:s3cret@host:9092")

    assert "s3cret" not in f"{caught.value} {vars(caught.value)}"


def test_a_file_is_named_by_a_path_or_by_text(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=me\n")

    assert Bus.from_file(str(file)).properties == Bus.from_file(file).properties


def test_wherever_addresses_are_written_a_url_may_stand() -> None:
    url = "kafka://me:x@a?security.protocol=SASL_PLAINTEXT&client.id=url"

    bus = Bus.of([Assignment("client.id", "option", "-X client.id")], url)

    assert bus.addresses == [("a", 9092)]
    assert bus.properties["sasl.username"] == "me"
    assert bus.properties["client.id"] == "option"
    assert Bus.of([Assignment("bootstrap.servers", url, "file:1")]).addresses == [("a", 9092)]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("kafka://me:hunter2@a:1", "Bus.from_url reads a URL"),
        ("me:hunter2@a:1", "a password goes into a URL: kafka://USER:PASSWORD@HOST:PORT"),
    ],
)
def test_a_password_among_addresses_is_refused_and_not_shown(given: str, sentence: str) -> None:
    with pytest.raises(PropertyError, match=sentence) as refused:
        Bus(given)
    assert "hunter2" not in str(refused.value)
