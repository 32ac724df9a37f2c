"""Configs of topics, brokers and groups: read them, set them, return them to their defaults."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headrace.cli.connection import Connection, admin_types
from headrace.cli.output import UsageError

KINDS = ("topic", "broker", "group")

# Kafka's names of where a value comes from.
_SET_ON = {
    "topic": {"DYNAMIC_TOPIC_CONFIG"},
    "group": {"GROUP_CONFIG"},
    "broker": {"DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG"},
}


class Config(NamedTuple):
    """One config as the broker reports it; a sensitive one has no value."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool

    def is_set_on(self, kind: str) -> bool:
        """Whether somebody gave it this value, here rather than further up."""
        return self.source in _SET_ON[kind]


def read_configs(connection: Connection, admin: Any, kind: str, name: str) -> list[Config]:
    """All configs of one topic, broker or group, by name."""
    kafka = admin_types()
    resource = kafka.ConfigResource(_resource_type(kind), name)
    futures = admin.describe_configs([resource], request_timeout=connection.timeout_s)
    (future,) = futures.values()
    entries = connection.wait(future)
    return sorted(
        Config(
            entry.name,
            entry.value,
            kafka.ConfigSource(entry.source).name,
            bool(entry.is_read_only),
            bool(entry.is_sensitive),
        )
        for entry in entries.values()
    )


def alter_configs(
    connection: Connection,
    admin: Any,
    kind: str,
    name: str,
    wanted: Mapping[str, str | None],
    *,
    is_forced: bool,
) -> None:
    """Give configs new values; None returns one to its default. The others stay as they are.

    A name that nobody knows is refused unless `is_forced`: a broker would store it without a word.
    """
    if not is_forced:
        _refuse_unknown(connection, admin, kind, name, wanted)
    kafka = admin_types()
    operations = kafka.AlterConfigOpType
    entries = [
        kafka.ConfigEntry(
            config,
            value,
            incremental_operation=operations.DELETE if value is None else operations.SET,
        )
        for config, value in wanted.items()
    ]
    resource = kafka.ConfigResource(_resource_type(kind), name, incremental_configs=entries)
    futures = admin.incremental_alter_configs([resource], request_timeout=connection.timeout_s)
    (future,) = futures.values()
    connection.wait(future)


def _refuse_unknown(
    connection: Connection, admin: Any, kind: str, target: str, names: Iterable[str]
) -> None:
    from headrace.settings import catalogue, retired, sources

    known = {"topic": catalogue.TOPIC, "broker": catalogue.BROKER, "group": catalogue.GROUP}[kind]
    unknown = [name for name in names if name not in known]
    if kind == "broker":
        unknown = [
            name
            for name in unknown
            if not catalogue.find_broker_setting(name) and not retired.is_for_plug_in(name)
        ]
    if not unknown:
        return
    # A newer broker knows more than we do, and shows what somebody forced on it before.
    shown = {config.name for config in read_configs(connection, admin, kind, target)}
    for name in unknown:
        if name not in shown:
            nearest = sources.nearest(name, sorted(shown.union(known)))
            guess = f"; did you mean {nearest}?" if nearest else ";"
            raise UsageError(
                f"{name}: no {kind} config has this name{guess} "
                "--force sends it all the same, for what a plug-in of the broker may know"
            )


def parse_assignments(words: Iterable[str]) -> dict[str, str]:
    """Read NAME=VALUE words; raises UsageError for any other."""
    configs = dict[str, str]()
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise UsageError(f"{word}: write NAME=VALUE, such as retention.ms=86400000")
        configs[name] = value
    return configs


def _resource_type(kind: str) -> Any:
    return admin_types().ResourceType[kind.upper()]
