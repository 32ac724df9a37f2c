"""Where clients connect: Kafka's `listeners` and `advertised.listeners`, read for one node.

A server.properties written for KRaft names a controller's listener too; it is passed over,
since there is no quorum here to talk to.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headrace.errors import ConfigError

_ANY_HOSTS = ("", "0.0.0.0", "::")


class Listener(NamedTuple):
    """One entry of `listeners`: NAME://host:port. An empty host is every interface."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def is_public(self) -> bool:
        """Others than this machine can reach it, as far as the name tells."""
        return not (self.host in ("localhost", "::1") or self.host.startswith("127."))


class Settings(Protocol):
    """What is asked of the settings here."""

    def __getitem__(self, name: str) -> object: ...


def client_listener(settings: Settings) -> Listener:
    """Where the settings say to listen for clients."""
    protocol_map = settings["listener.security.protocol.map"]
    return choose_listener(
        _entries(settings["listeners"]),
        _entries(settings["controller.listener.names"]),
        str(protocol_map) if protocol_map else None,
    )


def advertised_listener(settings: Settings, bound: Listener, fallback_host: str) -> Listener:
    """What the settings say clients are told to connect to."""
    return choose_advertised(_entries(settings["advertised.listeners"]), bound, fallback_host)


def parse_listeners(setting: str, entries: Sequence[str]) -> list[Listener]:
    """Read a list of listeners; `setting` is named when it cannot be read."""
    return [_parse(setting, entry.strip()) for entry in entries if entry.strip()]


def choose_listener(
    listeners: Sequence[str],
    controller_names: Sequence[str] = (),
    protocol_map: str | None = None,
) -> Listener:
    """The first listener for clients; raises ConfigError unless it is plain text."""
    # Kafka takes these names in capitals or not.
    pairs = (pair.upper().partition(":") for pair in (protocol_map or "").split(","))
    protocols = {name.strip(): protocol.strip() for name, _, protocol in pairs}
    controllers = {name.upper() for name in controller_names}
    for listener in parse_listeners("listeners", listeners):
        if listener.name in controllers:
            continue
        protocol = protocols.get(listener.name, listener.name)
        if protocol != "PLAINTEXT":
            raise ConfigError("listeners", listener, f"{protocol} is not there yet, use PLAINTEXT")
        return listener
    raise ConfigError("listeners", ",".join(listeners), "names no listener for clients")


def choose_advertised(advertised: Sequence[str], bound: Listener, fallback_host: str) -> Listener:
    """What clients are told to connect to: the configured one, else where we are bound.

    Port 0 in the setting means the port that was bound. `fallback_host` stands for
    "every interface", which nobody can connect to.
    """
    entries = parse_listeners("advertised.listeners", advertised)
    named = [entry for entry in entries if entry.name == bound.name] or entries
    if not named:
        host = fallback_host if bound.host in _ANY_HOSTS else bound.host
        return bound._replace(host=host)
    chosen = named[0]
    if chosen.host in _ANY_HOSTS:
        raise ConfigError("advertised.listeners", chosen, "name a host that clients can reach")
    return chosen if chosen.port else chosen._replace(port=bound.port)


def _entries(value: object) -> list[str]:
    """A list setting as the settings give it: a list, text with commas, or None."""
    if isinstance(value, str):
        value = value.split(",")
    return [str(entry).strip() for entry in value] if isinstance(value, list | tuple) else []


def _parse(setting: str, entry: str) -> Listener:
    name, sign, address = entry.partition("://")
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (name and sign and colon and port.isascii() and port.isdecimal()):
        raise ConfigError(setting, entry, "write it as NAME://host:port")
    if int(port) > 65535:
        raise ConfigError(setting, entry, "a port is at most 65535")
    return Listener(name.upper(), host, int(port))
