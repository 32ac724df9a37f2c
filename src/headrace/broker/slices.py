"""Iterates a long list within the loop's budget: others are served in between."""

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from headrace.broker.turns import Turn

_Item = TypeVar("_Item")


async def in_slices(items: Iterable[_Item]) -> AsyncIterator[_Item]:
    """Yield the items, with a pause whenever this turn of the loop has had its share.

    What they come from must not change meanwhile: pass a copy of what others may edit.
    """
    turn = Turn()
    for item in items:
        yield item
        if turn.is_over:
            await turn.breathe()
