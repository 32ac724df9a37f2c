"""A place in a partition as people write it: `oldest`, `latest`, `120`, `-1h`, `+10`, a time.

A written position knows no topic and no broker; whoever asks one turns it into offsets.
"""

import re
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from headrace.errors import ConfigError

SYNTAX = (
    "oldest, latest, an offset (120), a time (2026-11-16T10:00, UTC unless it names a zone; "
    "@1763287200000), a time ago (-90s, -30m, -1h, -7d), or a shift (+10, -10)"
)

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"-(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SHIFT = re.compile(r"[+-]\d+")
_WORDS = {"oldest": "oldest", "earliest": "oldest", "latest": "latest", "newest": "latest"}


class Kind(Enum):
    """What the number of a position counts."""

    OLDEST = "oldest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"  # milliseconds since 1970
    SHIFT = "shift"  # messages, against a position known elsewhere


class Position(NamedTuple):
    """One written position; `value` is 0 for oldest and latest."""

    kind: Kind
    value: int = 0


OLDEST = Position(Kind.OLDEST)
LATEST = Position(Kind.LATEST)


def parse_position(text: str, now_ms: int) -> Position:
    """Read a position; raises ConfigError with all that can be written."""
    if word := _WORDS.get(text.lower()):
        return Position(Kind(word))
    if text.isascii() and text.isdecimal():
        return Position(Kind.OFFSET, int(text))
    if match := _AGO.fullmatch(text):
        return Position(Kind.TIME, now_ms - round(float(match[1]) * _UNITS_MS[match[2]]))
    if _SHIFT.fullmatch(text):
        return Position(Kind.SHIFT, int(text))
    if text.startswith("@") and text[1:].isascii() and text[1:].isdecimal():
        return Position(Kind.TIME, int(text[1:]))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError("position", text, f"write {SYNTAX}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)  # as Kafka's own tools read it
    return Position(Kind.TIME, round(time.timestamp() * 1000))
