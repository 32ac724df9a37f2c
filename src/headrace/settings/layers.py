"""Where the value of a broker's setting comes from: four layers, the first that has it wins.

Kafka's order: this broker's dynamic value, the one for all brokers, the static one (file,
environment, command line), the default.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import NamedTuple

from headrace.settings.catalogue import BROKER, Setting
from headrace.settings.dynamic import DynamicConfigs


class ConfigSource(IntEnum):
    """Where a value comes from, with its number on the wire."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Synonym(NamedTuple):
    """One place that gives a setting a value; `value` is None where it may not be shown."""

    name: str
    value: str | None
    source: ConfigSource


class Layers:
    """The layers of one broker. `defaults` stand in for Kafka's where headrace has its own."""

    def __init__(self, static: Mapping[str, str], defaults: Mapping[str, str]) -> None:
        self.static, self.defaults = dict(static), dict(defaults)
        self.dynamic = DynamicConfigs()

    def raw(self, name: str) -> str | None:
        """Return the text of the layer that wins for exactly this name."""
        for _, layer in self._explicit():
            if name in layer:
                return layer[name]
        return self._default(name)

    def is_set(self, name: str) -> bool:
        """Whether somebody set it: it is not a default."""
        return any(name in layer for _, layer in self._explicit())

    def names_set(self) -> set[str]:
        """Return every name that is not a default."""
        return {name for _, layer in self._explicit() for name in layer}

    def synonyms(self, setting: Setting) -> tuple[Synonym, ...]:
        """Return all places that set `setting` or stand behind it, the winner first.

        As in Kafka the list begins at the setting's own name: when only `log.retention.hours`
        is set, `log.retention.ms` has none.
        """
        listed = dropwhile(lambda synonym: synonym.name != setting.name, self._places(setting))
        return tuple(listed)

    def _places(self, setting: Setting) -> Iterator[Synonym]:
        for source, layer in self._explicit():
            for name in setting.synonyms:
                if name in layer:
                    yield Synonym(name, None if setting.is_sensitive else layer[name], source)
        for name in setting.synonyms:
            default = self._default(name)
            if default is not None:
                value = None if setting.is_sensitive else default
                yield Synonym(name, value, ConfigSource.DEFAULT_CONFIG)

    def _explicit(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        return (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.dynamic.broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic.default),
            (ConfigSource.STATIC_BROKER_CONFIG, self.static),
        )

    def _default(self, name: str) -> str | None:
        if name in self.defaults:
            return self.defaults[name]
        # One listener's setting is not in here: it falls back to the general one by its synonyms.
        setting = BROKER.get(name)
        return None if setting is None else setting.default
