"""The broker's settings: every one of Kafka's by name, typed, from all its sources."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from headrace.config import LogConfig
from headrace.errors import InvalidConfigError
from headrace.properties import Assignment, read_properties
from headrace.settings import catalogue, describe, own, retired, rules, security, sources
from headrace.settings.catalogue import Setting, find_broker_setting
from headrace.settings.describe import ConfigEntry
from headrace.settings.dynamic import DynamicConfigs
from headrace.settings.errors import UnknownSettingError
from headrace.settings.layers import ConfigSource, Layers
from headrace.settings.log_config import make_log_config, topic_defaults
from headrace.settings.values import Value, parse

# Inside the class its getters hide the types of the same names.
_Int: TypeAlias = int
_Str: TypeAlias = str
_Bool: TypeAlias = bool
_Float: TypeAlias = float
_List: TypeAlias = list[str]
_Entries: TypeAlias = list[ConfigEntry]


class BrokerSettings:
    """All settings of one broker. Static ones never change; `set_dynamic` replaces the others.

    Owned by one thread. `warnings` are sentences about what was accepted and has no effect.
    """

    def __init__(
        self,
        static: Mapping[str, str],
        defaults: Mapping[str, str],
        warnings: Iterable[str] = (),
    ) -> None:
        self._layers = Layers(static, own.DEFAULTS | dict(defaults))
        self._values: dict[str, Value] = {}
        self.warnings = tuple(warnings)

    @classmethod
    def load(
        cls,
        *,
        file: Path | None = None,
        env: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> "BrokerSettings":
        """Read all sources, the weakest first; raises ConfigError that names source and fix."""
        environment = sources.read_environment(env or {})
        assignments = [
            *(read_properties(file) if file is not None else ()),
            *environment.assignments,
            *sources.read_command_line(overrides or {}),
        ]
        warnings = [*environment.warnings]
        chosen: dict[str, Assignment] = {}
        for assignment in assignments:
            if retired.is_retired(assignment.name):
                warnings.append(
                    f"{assignment.source}: {assignment.name} has no effect: "
                    "a setting of earlier versions of Kafka"
                )
                continue
            _check(assignment)
            chosen[assignment.name] = assignment
        _join_ids(chosen)
        warnings += security.check_start(chosen)
        static = {name: assignment.value for name, assignment in chosen.items()}
        return cls(static, defaults or {}, warnings)

    def note_effective(self, values: Mapping[_Str, _Str]) -> None:
        """Show what became of settings at start-up: the bound port, the directory in use."""
        self._layers.static.update(values)
        for name in values:
            self._values.pop(name, None)

    def __getitem__(self, name: _Str) -> Value:
        """Return the typed value; raises UnknownSettingError."""
        if name not in self._values:
            setting = find_broker_setting(name)
            if setting is None:
                raise UnknownSettingError(name)
            raw = self._layers.raw(name)
            self._values[name] = None if raw is None else parse(setting, raw)
        return self._values[name]

    def int(self, name: _Str) -> _Int:
        """Return the value of a setting that is a whole number."""
        value = self[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, not an int")
        return value

    def float(self, name: _Str) -> _Float:
        """Return the value of a setting that is a DOUBLE."""
        value = self[name]
        if not isinstance(value, float):
            raise TypeError(f"{name} is {value!r}, not a float")
        return value

    def bool(self, name: _Str) -> _Bool:
        """Return the value of a setting that is true or false."""
        value = self[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, not a bool")
        return value

    def str(self, name: _Str) -> _Str:
        """Return the value of a setting that is text and has a value."""
        value = self[name]
        if not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}, not text")
        return value

    def optional_str(self, name: _Str) -> _Str | None:
        """Return the value of a setting that is text, None when it has none."""
        return None if self[name] is None else self.str(name)

    def list(self, name: _Str) -> _List:
        """Return the entries of a LIST; none when it has no value."""
        value = self[name]
        if value is not None and not isinstance(value, list):
            raise TypeError(f"{name} is {value!r}, not a list")
        return value or []

    def is_set(self, name: _Str) -> _Bool:
        """Whether somebody set it, so that its value is not just a default."""
        return self._layers.is_set(name)

    @property
    def dynamic(self) -> dict[_Str, _Str]:
        """What was changed at run time, in the form in which it is stored."""
        return self._layers.dynamic.to_flat()

    @property
    def dynamic_configs(self) -> DynamicConfigs:
        """A copy of what was changed at run time, by resource."""
        return DynamicConfigs.from_flat(self.dynamic)

    def set_dynamic(self, flat: Mapping[_Str, _Str]) -> None:
        """Replace everything that was changed at run time."""
        self._layers.dynamic = DynamicConfigs.from_flat(flat)
        self._values.clear()

    def log_config(self, topic_overrides: Mapping[_Str, _Str]) -> LogConfig:
        """Return what the logs of a topic with these overrides go by."""
        return make_log_config(self._topic_values(topic_overrides))

    def topic_value(self, name: _Str, topic_overrides: Mapping[_Str, _Str]) -> Value:
        """Return one setting of a topic with these overrides."""
        return self._topic_values(topic_overrides)[name]

    def check_topic_configs(self, overrides: Mapping[_Str, _Str]) -> None:
        """Raise UnknownSettingError or InvalidConfigError unless a topic may have these."""
        rules.check_names(overrides, catalogue.TOPIC, "topic")
        rules.check_topic(self._topic_values(overrides))

    def check_group_configs(self, overrides: Mapping[_Str, _Str]) -> None:
        """Raise UnknownSettingError or InvalidConfigError unless a group may have these."""
        rules.check_names(overrides, catalogue.GROUP, "group")
        values = {name: parse(catalogue.GROUP[name], text) for name, text in overrides.items()}
        rules.check_group(values, self._group_values(overrides), self.__getitem__)

    def group_int(self, group: _Str, name: _Str) -> _Int:
        """Return the value of a broker's setting for one group, which may have its own."""
        overrides = self._layers.dynamic.groups.get(group, {})
        own_name = name.removeprefix("group.")
        return int(overrides[own_name]) if own_name in overrides else self.int(name)

    def describe_broker(self) -> _Entries:
        """Return all settings of this broker."""
        return describe.describe_broker(self._layers)

    def describe_default(self) -> _Entries:
        """Return what is set for all brokers at run time."""
        return describe.describe_default(self._layers)

    def describe_topic(self, overrides: Mapping[_Str, _Str]) -> _Entries:
        """Return all settings of a topic with these overrides."""
        values = self._topic_values(overrides)
        source = ConfigSource.DYNAMIC_TOPIC_CONFIG
        return describe.describe_overridable(
            catalogue.TOPIC, values, overrides, source, self._layers
        )

    def describe_group(self, overrides: Mapping[_Str, _Str]) -> _Entries:
        """Return all settings of a group with these overrides."""
        values = self._group_values(overrides)
        source = ConfigSource.DYNAMIC_GROUP_CONFIG
        return describe.describe_overridable(
            catalogue.GROUP, values, overrides, source, self._layers
        )

    def describe_client_metrics(self, overrides: Mapping[_Str, _Str]) -> _Entries:
        """Return all settings of a subscription to clients' metrics."""
        values = _overlaid(catalogue.CLIENT_METRICS, overrides, {})
        source = ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
        return describe.describe_overridable(
            catalogue.CLIENT_METRICS, values, overrides, source, self._layers
        )

    def _topic_values(self, overrides: Mapping[_Str, _Str]) -> dict[_Str, Value]:
        return _overlaid(catalogue.TOPIC, overrides, topic_defaults(self))

    def _group_values(self, overrides: Mapping[_Str, _Str]) -> dict[_Str, Value]:
        defaults = {
            name: self[setting.broker_name]
            for name, setting in catalogue.GROUP.items()
            if setting.broker_name is not None
        }
        return _overlaid(catalogue.GROUP, overrides, defaults)


def _overlaid(
    settings: Mapping[str, Setting], overrides: Mapping[str, str], defaults: Mapping[str, Value]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, setting in settings.items():
        if name in overrides:
            values[name] = parse(setting, overrides[name])
        elif name in defaults:
            values[name] = defaults[name]
        else:
            values[name] = None if setting.default is None else parse(setting, setting.default)
    return values


def _check(assignment: Assignment) -> None:
    setting = find_broker_setting(assignment.name)
    if setting is None:
        if retired.is_for_plug_in(assignment.name):
            return
        suggestion = sources.nearest(assignment.name, catalogue.BROKER)
        raise UnknownSettingError(assignment.name, source=assignment.source, suggestion=suggestion)
    try:
        parse(setting, assignment.value)
    except InvalidConfigError as error:
        raise InvalidConfigError(
            error.name, error.value, error.wanted, source=assignment.source
        ) from None


def _join_ids(chosen: dict[str, Assignment]) -> None:
    """`broker.id` is the old name of `node.id`: whichever is given stands for both."""
    node, broker = chosen.get("node.id"), chosen.get("broker.id")
    if node is not None and broker is not None:
        if node.value.strip() != broker.value.strip():
            raise InvalidConfigError(
                "node.id",
                node.value,
                f"node.id={node.value} contradicts broker.id={broker.value} "
                f"({broker.source}): leave broker.id out",
                source=node.source,
            )
    elif node is not None:
        chosen["broker.id"] = node._replace(name="broker.id")
    elif broker is not None:
        chosen["node.id"] = broker._replace(name="node.id")
