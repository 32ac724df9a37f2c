import asyncio

import pytest
from tests.broker.turn_counter import turns_during

from headrace.broker.slices import in_slices


def test_all_items_come_in_order() -> None:
    async def collect() -> list[int]:
        return [item async for item in in_slices(range(100))]

    assert asyncio.run(collect()) == list(range(100))


def test_others_have_turns_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async for _ in in_slices(range(50)):
            pass

    assert turns_during(work(), monkeypatch) >= 24
