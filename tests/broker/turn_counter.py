"""Counts how often the event loop came round while a coroutine ran, with slices of no length."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from headrace.broker import turns


def turns_during(work: Coroutine[Any, Any, Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many turns others had: each element of sliced work ends a slice here."""

    async def count() -> int:
        monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
        loop = asyncio.get_running_loop()
        came_round = 0

        def tick() -> None:
            nonlocal came_round
            came_round += 1
            nonlocal timer
            timer = loop.call_soon(tick)

        timer = loop.call_soon(tick)
        await work
        timer.cancel()
        return came_round

    with asyncio.Runner() as runner:
        return runner.run(count())
