"""Positions on the command line: what is none of them is wrong usage.

The forms are those of `headrace.client.positions`; `offsets.py` turns one into offsets.
"""

from headrace.cli.terminal import UsageError
from headrace.client import positions
from headrace.client.positions import LATEST, OLDEST, SYNTAX, Kind, Position
from headrace.errors import ConfigError

__all__ = ["LATEST", "OLDEST", "SYNTAX", "Kind", "Position", "parse_position"]


def parse_position(text: str, now_ms: int) -> Position:
    """Read a position; raises UsageError with all that can be written."""
    try:
        return positions.parse_position(text, now_ms)
    except ConfigError as error:
        raise UsageError(f"{error.value!r} is no position; {error.wanted}") from None
