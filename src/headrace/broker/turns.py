"""Long work in short slices: what all sliced requests together may take of one turn of the loop.

A coroutine calls `breathe` between its elements. It goes on at once while the turn's budget lasts
and waits in line when it is used up. The budget is one for the whole loop, not one for each
coroutine: forty long requests that took five milliseconds each would stall everybody for 200.
"""

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import TypeVar

# Of one turn. Ten such slices fit into the 50 ms that no client may be stalled, and what a
# turn costs beside them (a poll, a few callbacks: 20 µs) is not worth sparing.
SLICE_SECONDS = 0.005

_NOT_BEGUN = 0.0
_Item = TypeVar("_Item")


class _Line:
    """One loop's budget, and who waits for the next one, first come first served."""

    __slots__ = ("__weakref__", "deadline", "is_called", "waiting")

    def __init__(self) -> None:
        self.deadline = _NOT_BEGUN
        self.is_called = False
        self.waiting: deque[asyncio.Future[None]] = deque()

    def begin(self, now: float) -> None:
        """Somebody works in this turn; its end is the start of the next one."""
        self.deadline = now + SLICE_SECONDS
        if not self.is_called:
            self.is_called = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self.deadline = _NOT_BEGUN
        waiting = self.waiting
        while waiting:
            first = waiting.popleft()
            if not first.done():  # else its request was cancelled
                first.set_result(None)
                break
        self.is_called = bool(waiting)
        if waiting:
            asyncio.get_running_loop().call_soon(self._next_turn)


_lines: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Line]" = weakref.WeakKeyDictionary()


class Turn:
    """Made by a coroutine for its long work. Event-loop thread only."""

    __slots__ = ("_line",)

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        line = _lines.get(loop)
        if line is None:
            line = _lines[loop] = _Line()
        self._line = line

    @property
    def is_over(self) -> bool:
        """Whether `breathe` would wait: for loops so tight that even calling it counts."""
        line = self._line
        if line.deadline == _NOT_BEGUN:
            line.begin(perf_counter())
            return False
        return perf_counter() >= line.deadline

    async def breathe(self) -> None:
        """Let others have the loop when this turn's budget is used up."""
        if not self.is_over:
            return
        place = asyncio.get_running_loop().create_future()
        self._line.waiting.append(place)
        await place


async def in_slices(items: Iterable[_Item]) -> AsyncIterator[_Item]:
    """Yield the items, with a pause whenever this turn of the loop has had its share.

    What they come from must not change meanwhile: pass a copy of what others may edit.
    """
    turn = Turn()
    for item in items:
        yield item
        if turn.is_over:
            await turn.breathe()
