import pytest

from headrace.broker.listeners import (
    Listener,
    choose_advertised,
    choose_listener,
    client_listener,
    parse_listeners,
)
from headrace.errors import ConfigError

BOUND = Listener("PLAINTEXT", "127.0.0.1", 40000)


def test_the_controllers_listener_is_passed_over() -> None:
    entries = ["CONTROLLER://:9093", "PLAINTEXT://127.0.0.1:9092"]

    assert choose_listener(entries, ["CONTROLLER"]) == Listener("PLAINTEXT", "127.0.0.1", 9092)


def test_the_settings_may_be_text_or_lists() -> None:
    settings = {
        "listeners": "CONTROLLER://:9093, INSIDE://localhost:1",
        "controller.listener.names": ["CONTROLLER"],
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT",
    }

    assert client_listener(settings) == Listener("INSIDE", "localhost", 1)


def test_capitals_do_not_matter_in_the_names_of_listeners_and_protocols() -> None:
    entries = ["ctl://:9093", "Inside://127.0.0.1:9092"]

    chosen = choose_listener(entries, ["CTL"], "ctl:SSL, inside:plaintext")

    assert chosen == Listener("INSIDE", "127.0.0.1", 9092)


def test_an_encrypted_listener_is_refused_until_there_is_encryption() -> None:
    with pytest.raises(ConfigError, match="SSL is not there yet"):
        choose_listener(["SECURE://127.0.0.1:9092"], (), "SECURE:SSL")


def test_no_listener_for_clients_is_refused() -> None:
    with pytest.raises(ConfigError, match="names no listener for clients"):
        choose_listener(["CONTROLLER://:9093"], ["CONTROLLER"])


@pytest.mark.parametrize("entry", ["127.0.0.1:9092", "PLAINTEXT://host", "A://h:x", "A://h:70000"])
def test_what_cannot_be_read_names_the_setting(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"^advertised\.listeners="):
        parse_listeners("advertised.listeners", [entry])


def test_an_ipv6_listener_is_read_and_written_with_brackets() -> None:
    (listener,) = parse_listeners("listeners", ["PLAINTEXT://[::1]:9092"])

    assert (listener.host, str(listener)) == ("::1", "PLAINTEXT://[::1]:9092")


@pytest.mark.parametrize(
    ("host", "is_public"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("", True), ("10.0.0.1", True)],
)
def test_everything_but_loopback_is_public(host: str, is_public: bool) -> None:
    assert Listener("PLAINTEXT", host, 9092).is_public is is_public


def test_without_a_setting_the_bound_address_is_advertised() -> None:
    assert choose_advertised([], BOUND, "box") == BOUND


def test_every_interface_is_advertised_as_this_host() -> None:
    assert choose_advertised([], BOUND._replace(host="0.0.0.0"), "box").host == "box"


def test_the_setting_wins_and_port_0_is_the_bound_one() -> None:
    chosen = choose_advertised(["OTHER://a:1", "PLAINTEXT://broker.example:0"], BOUND, "box")

    assert (chosen.host, chosen.port) == ("broker.example", 40000)


def test_nobody_can_connect_to_every_interface() -> None:
    with pytest.raises(ConfigError, match="name a host that clients can reach"):
        choose_advertised(["PLAINTEXT://0.0.0.0:9092"], BOUND, "box")
