"""Host and port of bootstrap servers, as people write them: `host:port,[::1]:9092`."""

from headrace.client.errors import PropertyError
from headrace.client.secrets import HIDDEN
from headrace.properties import Assignment

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

Address = tuple[str, int]


def parse_addresses(bootstrap: str, source: str = "bootstrap.servers") -> list[Address]:
    """Read them all; PropertyError names the one that is none. `source` is where they stand."""
    refuse_user(bootstrap, source)
    return [_parse(word, source) for word in bootstrap.split(",")]


def refuse_user(bootstrap: str, source: str = "bootstrap.servers") -> None:
    """PropertyError for who writes a user before the address; it shows nothing of it."""
    if "@" in bootstrap:
        raise PropertyError(
            Assignment("bootstrap.servers", HIDDEN, source),
            "a password goes into a URL: kafka://USER:PASSWORD@HOST:PORT",
        )


def _parse(word: str, source: str) -> Address:
    # Kafka's own tools take a protocol before the address, and leave it out of account.
    host, separator, port = word.strip().rpartition("://")[2].rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        given = Assignment("bootstrap.servers", word, f"{source} {word}")
        raise PropertyError(given, f"write HOST:PORT, such as {DEFAULT_BOOTSTRAP}")
    return host.strip("[]"), int(port)
