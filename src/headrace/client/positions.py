"""A place in a partition as people write it: `oldest`, `latest`, `120`, `-1h`, `+10`, a time.

A written position knows no topic and no broker; whoever asks one turns it into offsets.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NamedTuple

from headrace.client.errors import PositionError

SYNTAX = (
    "oldest, latest, an offset (120), a time (2026-11-16T10:00, UTC unless it names a zone; "
    "@1763287200000), a time ago (-90s, -30m, -1h, -7d), or a shift (+10, -10)"
)

# Kafka counts offsets in 64 bits.
MAX_OFFSET = (1 << 63) - 1
# The last millisecond of the year 9999: dates end there, and no clock is set later.
MAX_TIME_MS = 253_402_300_799_999

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"-(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SHIFT = re.compile(r"[+-]\d+")
# More than any number that means something has, and few enough to be shown whole.
_MAX_CHARACTERS = 60
_WORDS = {"oldest": "oldest", "earliest": "oldest", "latest": "latest", "newest": "latest"}


class PositionKind(Enum):
    """What the number of a position counts."""

    OLDEST = "oldest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"  # milliseconds since 1970
    SHIFT = "shift"  # messages, against a position known elsewhere


class Position(NamedTuple):
    """A place in a partition, as it was written; `value` is 0 for oldest and latest.

        start = Position.parse("-1h")
        with Consumer(bus, "orders", start=start) as consumer:
            consumer.poll(timeout_s=1)
        assert (Position.parse("oldest"), Position.parse("latest")) == (OLDEST, LATEST)

    Whoever takes a position takes as well what it is written as, an offset, a datetime (a naive one
    is local time, as everywhere in Python), or a timedelta before now.
    """

    kind: PositionKind
    value: int = 0

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read `oldest`, `120`, `-1h`, `2026-11-16T10:00`; ConfigError says what can be written."""
        return parse_position(text, time.time_ns() // 1_000_000)


OLDEST = Position(PositionKind.OLDEST)
LATEST = Position(PositionKind.LATEST)


def position_of(given: "str | int | datetime | timedelta | Position") -> Position:
    """A position as a program gives it: written, an offset, a time, or a span before now."""
    now_ms = time.time_ns() // 1_000_000
    if isinstance(given, Position):
        return given
    if isinstance(given, timedelta):
        return _time(now_ms - round(abs(given).total_seconds() * 1000), f"{given} before now")
    if isinstance(given, datetime):
        try:
            return _time(round(given.timestamp() * 1000), str(given))
        except (OverflowError, ValueError):  # of the year 1, say
            return _time(-1, str(given))
    if isinstance(given, int):
        return parse_position(str(given), now_ms)
    return parse_position(given, now_ms)


def parse_position(text: str, now_ms: int) -> Position:
    """Read a position; raises PositionError with all that can be written."""
    if len(text) > _MAX_CHARACTERS:
        raise PositionError(f"{text[:_MAX_CHARACTERS]}…", f"write {SYNTAX}")
    if word := _WORDS.get(text.lower()):
        return Position(PositionKind(word))
    if text.isascii() and text.isdecimal():
        return _counted(PositionKind.OFFSET, int(text), text)
    if match := _AGO.fullmatch(text):
        return _time(now_ms - round(float(match[1]) * _UNITS_MS[match[2]]), text)
    if _SHIFT.fullmatch(text):
        return _counted(PositionKind.SHIFT, int(text), text)
    if text.startswith("@") and text[1:].isascii() and text[1:].isdecimal():
        return _time(int(text[1:]), text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise PositionError(text, f"write {SYNTAX}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)  # as Kafka's own tools read it
    return _time(round(moment.timestamp() * 1000), text)


def _counted(kind: PositionKind, value: int, text: str) -> Position:
    if abs(value) > MAX_OFFSET:
        raise PositionError(text, f"no offset is beyond {MAX_OFFSET}")
    return Position(kind, value)


def _time(value_ms: int, text: str) -> Position:
    if not 0 <= value_ms <= MAX_TIME_MS:
        raise PositionError(
            text,
            f"times are in the years 1970 to 9999 (@0 to @{MAX_TIME_MS}); "
            "oldest and latest are the ends",
        )
    return Position(PositionKind.TIME, value_ms)
