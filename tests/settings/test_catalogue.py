import re
from pathlib import Path

import pytest

import headrace
from headrace.settings import effects
from headrace.settings.catalogue import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ConfigType,
    Setting,
    find_broker_setting,
)
from headrace.settings.own import DEFAULTS, OWN_SETTINGS
from headrace.settings.values import parse, show

ALL = [
    *BROKER.values(),
    *TOPIC.values(),
    *GROUP.values(),
    *CLIENT_METRICS.values(),
]


def test_every_default_passes_its_own_checks_and_reads_back_the_same() -> None:
    for setting in ALL:
        if setting.default is not None:
            assert show(parse(setting, setting.default)) == setting.default, setting.name


def test_our_own_defaults_pass_the_checks_too() -> None:
    for name, text in DEFAULTS.items():
        assert show(parse(BROKER[name], text)) == text


def test_every_topic_and_group_setting_falls_back_to_a_broker_setting_of_the_same_kind() -> None:
    numbers = {ConfigType.INT, ConfigType.LONG}
    for setting in [*TOPIC.values(), *GROUP.values()]:
        if setting.broker_name is not None:
            kinds = {setting.type, BROKER[setting.broker_name].type}
            assert len(kinds) == 1 or kinds <= numbers, setting.name


def test_what_acts_is_a_known_setting_and_says_so_in_one_sentence() -> None:
    assert effects.TOPIC_EFFECTS.keys() <= TOPIC.keys()
    assert effects.BROKER_EFFECTS.keys() <= BROKER.keys()
    assert {own.name for own in OWN_SETTINGS} <= effects.BROKER_EFFECTS.keys()
    for sentence in [*effects.TOPIC_EFFECTS.values(), *effects.BROKER_EFFECTS.values()]:
        assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.external.max.connections", "max.connections"),
        ("listener.name.external.plain.sasl.jaas.config", "sasl.jaas.config"),
    ],
)
def test_a_listeners_own_setting_is_the_general_one_under_its_name(name: str, base: str) -> None:
    setting = find_broker_setting(name)

    assert isinstance(setting, Setting)
    assert (setting.name, setting.type) == (name, BROKER[base].type)
    assert setting.synonyms == (name, base)
    assert setting.is_read_only


@pytest.mark.parametrize("name", ["no.such", "listener.name.external.no.such", "listener.name.x"])
def test_a_name_nobody_defines_is_not_found(name: str) -> None:
    assert find_broker_setting(name) is None


SOURCES = Path(headrace.__file__).parent
QUOTED_NAME = re.compile(r'"([a-z]+(?:\.[a-z]+)*)"')
# Settings of Apache Kafka and of its clients are written there, for those.
ABOUT_KAFKA = {"client", "kafka", "pipelines"}


def names_read_by_the_broker() -> set[str]:
    """Quoted names of broker settings in all code but the catalogue's own."""
    names: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        part = path.relative_to(SOURCES).parts[0]
        if part in ABOUT_KAFKA:
            continue
        if part != "settings" or path.name == "log_config.py":
            names |= set(QUOTED_NAME.findall(path.read_text())) & BROKER.keys()
    return names


def test_what_is_said_to_act_is_just_what_the_broker_reads() -> None:
    of_topics = {
        setting.broker_name for setting in TOPIC.values() if setting.name in effects.TOPIC_EFFECTS
    }

    # `broker.id` is read as node.id; a topic's config has no other use for its own names.
    read = names_read_by_the_broker() | {"broker.id"}
    ours = effects.BROKER_EFFECTS.keys() - (of_topics - {None})
    assert ours - read == set()
    assert read - effects.BROKER_EFFECTS.keys() - TOPIC.keys() == set()
