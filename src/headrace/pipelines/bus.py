"""The bus a pipeline reads and writes: where it is, and how its clients log on.

Spark's connector is a Java client, everything else here is librdkafka; the same property often
has another name in each, so both sets travel together. Whoever makes a Bus translates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.errors import SourceError

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
ISOLATION_LEVEL = "isolation.level"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


@dataclass(frozen=True, slots=True)
class Bus:
    """Either engine: the embedded broker or an Apache Kafka cluster."""

    bootstrap: str = DEFAULT_BOOTSTRAP
    java: Mapping[str, str] = field(default_factory=dict)
    librdkafka: Mapping[str, str] = field(default_factory=dict)

    @property
    def isolation_level(self) -> str:
        """What readers see of transactions: only what was committed, unless the user's property
        `isolation.level` says otherwise."""
        return self.java.get(ISOLATION_LEVEL, READ_COMMITTED)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each bootstrap server; SourceError if one is not written so."""
        return [_parse_address(word) for word in self.bootstrap.split(",")]

    def spark_options(self) -> dict[str, str]:
        """What the connector takes: Java's names behind `kafka.`."""
        named = {f"kafka.{name}": value for name, value in self.java.items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **named}

    def client_config(self, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """What a confluent_kafka client is made from; the user's properties win over `more`."""
        return {
            "bootstrap.servers": self.bootstrap,
            "log_level": 0,
            **(more or {}),
            **self.librdkafka,
        }


def _parse_address(word: str) -> tuple[str, int]:
    host, separator, port = word.strip().rpartition("://")[2].rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise SourceError(f"bootstrap {word!r}: write HOST:PORT, such as {DEFAULT_BOOTSTRAP}")
    return host.strip("[]"), int(port)
