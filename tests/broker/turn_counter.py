"""Counts how often a coroutine stepped back for others, with slices of no length."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from headrace.broker import turns


def turns_during(work: Coroutine[Any, Any, Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many turns others had because of it: every second element of sliced work waits here.

    Turns in which a coroutine waits for a thread do not count: others have those anyway.
    """
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    given = 0
    next_turn = turns._Line._next_turn

    def count(line: turns._Line) -> None:
        nonlocal given
        given += bool(line.waiting)
        next_turn(line)

    monkeypatch.setattr(turns._Line, "_next_turn", count)
    with asyncio.Runner() as runner:
        runner.run(work)
    return given
