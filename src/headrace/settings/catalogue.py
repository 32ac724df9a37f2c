"""Every setting Apache Kafka 4.3.1 knows: name, type, default and what values it takes.

The JSON files beside this module hold the facts, taken from that version's own definitions and
from what a node of it describes; headrace's own settings are added from `own`. Settings marked
internal are known to Kafka but described only where they are set.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from headrace.settings.own import FIXED_WHILE_RUNNING, OWN_SETTINGS

READ_ONLY = "read-only"
PER_BROKER = "per-broker"
CLUSTER_WIDE = "cluster-wide"

_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]+\.(.+)")


class ConfigType(IntEnum):
    """A setting's type, with its number on the wire."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. `default` is the text Kafka shows, None where there is no value.

    `synonyms` are the names that set the same thing, the strongest first, itself included;
    `broker_name` is the broker's setting a topic or group falls back to.
    """

    name: str
    type: ConfigType
    default: str | None
    update: str = READ_ONLY
    is_internal: bool = False
    synonyms: tuple[str, ...] = ()
    broker_name: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    one_of: tuple[str, ...] = ()
    ignores_case: bool = False
    is_never_empty: bool = False
    form: str | None = None  # a rule of its own, by name: see `values`

    @property
    def is_sensitive(self) -> bool:
        """Its value is never shown."""
        return self.type in (ConfigType.PASSWORD, ConfigType.UNKNOWN)

    @property
    def is_read_only(self) -> bool:
        """It cannot change while the broker runs."""
        return self.update == READ_ONLY


def _read(file_name: str, update: str = READ_ONLY) -> dict[str, Setting]:
    # Not importlib.resources: it takes longer to import than all of this module.
    text = Path(__file__).with_name(file_name).read_text("ascii")
    settings = (_setting(row, update) for row in json.loads(text))
    return {setting.name: setting for setting in settings}


def _setting(row: Mapping[str, Any], update: str) -> Setting:
    name = row["name"]
    return Setting(
        name=name,
        type=ConfigType[row["type"]],
        default=row["default"],
        update=READ_ONLY if name in FIXED_WHILE_RUNNING else row.get("update", update),
        is_internal=row.get("internal", False),
        synonyms=tuple(row.get("synonyms", (name,))),
        broker_name=row.get("broker_name"),
        minimum=row.get("min"),
        maximum=row.get("max"),
        one_of=tuple(row.get("one_of", ())),
        ignores_case=row.get("ignore_case", False),
        is_never_empty=row.get("not_empty", False),
        form=row.get("form"),
    )


BROKER: Mapping[str, Setting] = _read("broker_configs.json") | {
    own.name: Setting(
        name=own.name,
        type=ConfigType[own.type],
        default=own.default,
        synonyms=(own.name,),
        minimum=own.minimum,
    )
    for own in OWN_SETTINGS
}
TOPIC: Mapping[str, Setting] = _read("topic_configs.json", CLUSTER_WIDE)
GROUP: Mapping[str, Setting] = _read("group_configs.json", CLUSTER_WIDE)
CLIENT_METRICS: Mapping[str, Setting] = _read("client_metrics_configs.json", CLUSTER_WIDE)


def find_broker_setting(name: str) -> Setting | None:
    """Return the broker's setting of this name, also one given for a single listener.

    `listener.name.external.ssl.keystore.type` is `ssl.keystore.type` for the listener EXTERNAL;
    after the listener a SASL mechanism may stand. Kafka shows them all as read-only.
    """
    setting = BROKER.get(name)
    match = _LISTENER_PREFIX.fullmatch(name)
    if setting is not None or match is None:
        return setting
    base_name = match[1]
    base = BROKER.get(base_name) or BROKER.get(base_name.partition(".")[2])
    if base is None:
        return None
    return replace(base, name=name, update=READ_ONLY, synonyms=(name, base.name))
