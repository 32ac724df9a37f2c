"""What Kafka checks beyond a single value: settings that depend on each other or on the resource.

Broker settings changed at run time are refused with RequestError, as Kafka does; all else with
ConfigError.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from headrace.errors import ConfigError, InvalidConfigError, RequestError
from headrace.settings import catalogue
from headrace.settings.catalogue import PER_BROKER, Setting, find_broker_setting
from headrace.settings.errors import UnknownSettingError
from headrace.settings.values import Value, parse

MIN_METRICS_INTERVAL_MS = 100
MAX_METRICS_INTERVAL_MS = 3_600_000

_METRICS_MATCH_KEYS = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
# Kafka takes a new key or trust store for one listener at a time.
_LISTENERS_OWN = "listener.name."
_ONLY_BY_LISTENER = ("ssl.keystore.", "ssl.truststore.", "ssl.key.")


def check_names(overrides: Iterable[str], known: Mapping[str, Setting], kind: str) -> None:
    """Raise UnknownSettingError for the first name that is not known."""
    for name in overrides:
        if name not in known:
            raise UnknownSettingError(name, kind)


def check_topic(values: Mapping[str, Value]) -> None:
    """Check a topic's effective values against each other."""
    if values["remote.storage.enable"]:
        raise InvalidConfigError(
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    lag_min, lag_max = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(lag_min, int) and isinstance(lag_max, int) and lag_min > lag_max:
        raise InvalidConfigError(
            "min.compaction.lag.ms",
            lag_min,
            f"conflict topic config setting min.compaction.lag.ms ({lag_min}) > "
            f"max.compaction.lag.ms ({lag_max})",
        )


def check_group(
    overrides: Mapping[str, Value],
    values: Mapping[str, Value],
    broker_value: Callable[[str], Value],
) -> None:
    """Check a group's overrides against the bounds the broker sets, and its values together."""
    for name, value in overrides.items():
        for bound_name, is_minimum in _group_bounds(name):
            bound = broker_value(bound_name)
            if not isinstance(value, int) or not isinstance(bound, int):
                continue
            if value < bound if is_minimum else value > bound:
                relation = "greater" if is_minimum else "less"
                raise InvalidConfigError(
                    name, value, f"{name} must be {relation} than or equal to {bound_name}"
                )
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, heartbeat_ms = values[session], values[heartbeat]
        if isinstance(session_ms, int) and isinstance(heartbeat_ms, int):
            if session_ms > heartbeat_ms:
                continue
            raise InvalidConfigError(
                session, session_ms, f"{session} must be greater than {heartbeat}"
            )


def check_client_metrics(overrides: Mapping[str, str]) -> None:
    """Check a subscription to clients' metrics (KIP-714)."""
    for name in overrides:
        if name not in catalogue.CLIENT_METRICS:
            raise RequestError(f"Unknown client metrics configuration: {name}")
    values = {name: parse(catalogue.CLIENT_METRICS[name], text) for name, text in overrides.items()}
    interval_ms = values.get("interval.ms")
    if isinstance(interval_ms, int) and not (
        MIN_METRICS_INTERVAL_MS <= interval_ms <= MAX_METRICS_INTERVAL_MS
    ):
        raise RequestError(
            f"Invalid value {interval_ms} for interval.ms, interval must be between "
            f"{MIN_METRICS_INTERVAL_MS} and {MAX_METRICS_INTERVAL_MS} (1 hour)"
        )
    patterns = values.get("match")
    for pattern in patterns if isinstance(patterns, list) else []:
        key, sign, expression = pattern.partition("=")
        if not sign or key.strip() not in _METRICS_MATCH_KEYS or not _compiles(expression):
            raise InvalidConfigError(
                "match", pattern, f"Illegal client matching pattern: {pattern}"
            )


def check_broker_update(overrides: Mapping[str, str], *, is_default: bool) -> None:
    """Check what would be all dynamic settings of one broker, or of all for `is_default`.

    A name Kafka does not know is taken, as Kafka takes it: it may be a plug-in's.
    """
    names = sorted(overrides)
    settings = {name: find_broker_setting(name) for name in names}
    fixed = [
        name
        for name, setting in settings.items()
        if setting is not None and setting.is_read_only and name in catalogue.BROKER
    ]
    if fixed:
        raise RequestError(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    by_listener = [name for name in names if name.startswith(_ONLY_BY_LISTENER)]
    if by_listener:
        raise RequestError(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: [{', '.join(by_listener)}]"
        )
    per_broker = [
        name
        for name, setting in settings.items()
        if name.startswith(_LISTENERS_OWN) or (setting and setting.update == PER_BROKER)
    ]
    if is_default and per_broker:
        raise RequestError(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(per_broker)}]"
        )
    for name, setting in settings.items():
        if setting is None:
            continue
        try:
            parse(setting, overrides[name])
        except ConfigError as error:
            raise RequestError(str(error)) from error


def _group_bounds(name: str) -> list[tuple[str, bool]]:
    """Return the broker's settings that bound a group's: (name, whether it is the minimum)."""
    kind, _, rest = name.partition(".")
    rest = rest.removeprefix("num.")  # streams.num.standby.replicas has group.streams.max.standby…
    bounds = ((f"group.{kind}.min.{rest}", True), (f"group.{kind}.max.{rest}", False))
    return [bound for bound in bounds if bound[0] in catalogue.BROKER]


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True
