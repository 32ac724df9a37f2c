"""Carries out a coroutine where no event loop runs, as a test's arrangement."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def at_once(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """Return what the coroutine does; tasks it has left behind are carried out, too."""

    async def run() -> _Result:
        result = await coroutine
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others)
        return result

    with asyncio.Runner() as runner:
        return runner.run(run())
