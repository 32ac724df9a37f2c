"""A bus: where it is, and how its clients log on. Either engine, by Kafka's protocol alone.

Properties may be written in Java's names or in librdkafka's; a Bus keeps librdkafka's and gives
both. It holds no connection, and travels to Spark's workers.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from headrace.client.addresses import DEFAULT_BOOTSTRAP, Address, parse_addresses, refuse_user
from headrace.client.errors import PropertyError
from headrace.client.java_names import java_properties
from headrace.client.librdkafka_names import translate
from headrace.client.secrets import HIDDEN, shown
from headrace.client.url import is_url, parse_url
from headrace.properties import Assignment, read_properties

BOOTSTRAP_VARIABLE = "HEADRACE_BOOTSTRAP"
BOOTSTRAP_SERVERS = "bootstrap.servers"
ISOLATION_LEVEL = "isolation.level"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
_QUIET = "0"  # syslog's "emergency", which librdkafka never is in


@dataclass(frozen=True, slots=True, repr=False)
class Bus:
    """The embedded broker or an Apache Kafka cluster: where it is, and how its clients log on.

        bus = Bus("127.0.0.1:9092", {"client.id": "billing"})
        assert bus.addresses == [("127.0.0.1", 9092)]

    Properties may have Java's names or librdkafka's. A secret among them is never shown.
    """

    bootstrap: str = DEFAULT_BOOTSTRAP
    properties: Mapping[str, str] = field(default_factory=dict)
    # Where a property was written, for an error to name; of those not here, its own name.
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take properties in either client's names; PropertyError for one that cannot work."""
        if is_url(self.bootstrap):
            given = Assignment(BOOTSTRAP_SERVERS, HIDDEN, BOOTSTRAP_SERVERS)
            raise PropertyError(given, "addresses are wanted here; Bus.from_url reads a URL")
        refuse_user(self.bootstrap)
        translated = translate(self._assignments())
        object.__setattr__(self, "properties", {each.name: each.value for each in translated})
        object.__setattr__(self, "sources", {each.name: each.source for each in translated})

    @classmethod
    def of(cls, given: Iterable[Assignment], bootstrap: str | None = None) -> Self:
        """From what was written somewhere; `bootstrap` wins over `bootstrap.servers` in it.

        It may be a URL as `from_url` reads it, over whose properties the other ones win.
        """
        by_name = {each.name: each for each in given}
        named = by_name.pop(BOOTSTRAP_SERVERS, None)
        addresses = bootstrap or (named.value if named else DEFAULT_BOOTSTRAP)
        if is_url(addresses):
            addresses, written = parse_url(addresses, BOOTSTRAP_SERVERS)
            by_name = {each.name: each for each in written} | by_name
        return cls(
            addresses,
            {each.name: each.value for each in by_name.values()},
            {each.name: each.source for each in by_name.values()},
        )

    @classmethod
    def from_file(cls, path: Path | str, bootstrap: str | None = None) -> Self:
        """From a properties file as Kafka's own clients have them."""
        return cls.of(read_properties(Path(path)), bootstrap)

    @classmethod
    def from_url(cls, url: str, source: str = "URL") -> Self:
        """From `kafka://user:password@host:9092,host2:9092?property=value&…`.

        The port is 9092 unless it is there. Who gives a user logs on by SASL PLAIN over TLS, unless
        `security.protocol` and `sasl.mechanism` say otherwise. `source` is for errors to name.
        """
        addresses, given = parse_url(url, source)
        return cls.of(given, addresses)

    @classmethod
    def from_environment(cls) -> Self:
        """What the variable HEADRACE_BOOTSTRAP says: addresses, or a URL as `from_url` reads it.

        127.0.0.1:9092 where it is not set.
        """
        value = os.environ.get(BOOTSTRAP_VARIABLE, "").strip() or DEFAULT_BOOTSTRAP
        if is_url(value):
            return cls.from_url(value, BOOTSTRAP_VARIABLE)
        parse_addresses(value, BOOTSTRAP_VARIABLE)
        return cls(value)

    @property
    def addresses(self) -> list[Address]:
        """Host and port of each bootstrap server; PropertyError if one is not written so."""
        return parse_addresses(self.bootstrap)

    @property
    def isolation_level(self) -> str:
        """What readers see of transactions: only what was committed, unless the user's property
        `isolation.level` says otherwise."""
        return self.properties.get(ISOLATION_LEVEL, READ_COMMITTED)

    def java_properties(self) -> dict[str, str]:
        """What logs a Java client on, in its own names; PropertyError for what it cannot have."""
        return java_properties(self._assignments())

    def spark_options(self) -> dict[str, str]:
        """What Spark's connector takes: Java's names behind `kafka.`."""
        named = {f"kafka.{name}": value for name, value in self.java_properties().items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **named}

    def client_config(self, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """What a librdkafka client is made from; the user's properties win over `more`."""
        return {
            BOOTSTRAP_SERVERS: self.bootstrap,
            "log_level": _QUIET,
            **(more or {}),
            **self.properties,
        }

    def __repr__(self) -> str:
        properties = f", {shown(self.properties)}" if self.properties else ""
        return f"{type(self).__name__}({self.bootstrap!r}{properties})"

    def _assignments(self) -> list[Assignment]:
        return [
            Assignment(name, value, self.sources.get(name, name))
            for name, value in self.properties.items()
        ]
