"""Settings as DescribeConfigs shows them: value, source, and everything that stands behind it."""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.settings import catalogue, effects
from headrace.settings.catalogue import ConfigType, Setting, find_broker_setting
from headrace.settings.layers import ConfigSource, Layers, Synonym
from headrace.settings.values import Value, parse, show


class ConfigEntry(NamedTuple):
    """One setting of one resource. `value` is None where there is none or it may not be shown."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    documentation: str | None  # only for settings that act


def describe_broker(layers: Layers) -> list[ConfigEntry]:
    """Return every setting of the broker, by name, and unknown ones where they are set."""
    names = layers.names_set()
    names |= {name for name, setting in catalogue.BROKER.items() if not setting.is_internal}
    return [_broker_entry(name, layers) for name in sorted(names)]


def describe_default(layers: Layers) -> list[ConfigEntry]:
    """Return what is set for all brokers at run time, and nothing else."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    entries = []
    for name, text in sorted(layers.dynamic.default.items()):
        setting = _known_or_opaque(name)
        value = None if setting.is_sensitive else text
        synonyms = (Synonym(name, value, source),)
        entries.append(_entry(setting, parse(setting, text), source, synonyms, None))
    return entries


def describe_overridable(
    settings: Mapping[str, Setting],
    values: Mapping[str, Value],
    overrides: Mapping[str, str],
    source: ConfigSource,
    layers: Layers,
) -> list[ConfigEntry]:
    """Return the settings of a topic or group: its overrides, then the broker's settings."""
    entries = []
    for name, setting in settings.items():
        if setting.is_internal and name not in overrides:
            continue
        synonyms: tuple[Synonym, ...] = ()
        if name in overrides:
            synonyms = (Synonym(name, show(parse(setting, overrides[name])), source),)
        if setting.broker_name is not None:
            synonyms += layers.synonyms(catalogue.BROKER[setting.broker_name])
        elif settings is catalogue.GROUP and setting.default is not None:
            # Kafka lists a group's own default; a topic's without a broker's name it does not.
            synonyms += (Synonym(name, setting.default, ConfigSource.DEFAULT_CONFIG),)
        winner = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        documentation = effects.TOPIC_EFFECTS.get(name) if settings is catalogue.TOPIC else None
        entries.append(_entry(setting, values[name], winner, synonyms, documentation))
    return entries


def _broker_entry(name: str, layers: Layers) -> ConfigEntry:
    setting = _known_or_opaque(name)
    raw = layers.raw(name)
    synonyms = layers.synonyms(setting)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    value = None if raw is None else parse(setting, raw)
    return _entry(setting, value, source, synonyms, effects.BROKER_EFFECTS.get(name))


def _entry(
    setting: Setting,
    value: Value,
    source: ConfigSource,
    synonyms: tuple[Synonym, ...],
    documentation: str | None,
) -> ConfigEntry:
    return ConfigEntry(
        setting.name,
        None if setting.is_sensitive else show(value),
        source,
        setting.type,
        setting.is_read_only,
        setting.is_sensitive,
        synonyms,
        documentation,
    )


def _known_or_opaque(name: str) -> Setting:
    """A name Kafka does not know may belong to a plug-in: it is kept, and never shown."""
    opaque = Setting(name=name, type=ConfigType.UNKNOWN, default=None, synonyms=(name,))
    return find_broker_setting(name) or opaque
