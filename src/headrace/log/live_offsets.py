"""The offsets that stay in a compaction, asked for by range.

They are kept in small sorted blocks: to sort a million offsets in one go takes half a second, in
which Python lets no other thread run, not even the one that serves clients.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable

_BLOCK_BITS = 13  # 8,192 offsets: sorted within a millisecond


class LiveOffsets:
    """Made of offsets in any order."""

    def __init__(self, offsets: Iterable[int], take_turns: Callable[[], None]) -> None:
        blocks: dict[int, list[int]] = {}
        for offset in offsets:
            block = blocks.get(offset >> _BLOCK_BITS)
            if block is None:
                take_turns()
                block = blocks[offset >> _BLOCK_BITS] = []
            block.append(offset)
        for block in blocks.values():
            block.sort()
            take_turns()
        self._blocks = blocks

    def clear(self, take_turns: Callable[[], None]) -> None:
        """Give the memory back."""
        for block in self._blocks.values():
            block.clear()
            take_turns()
        self._blocks = {}

    def has_any(self, first: int, last: int) -> bool:
        """Whether one of them lies in [first, last]."""
        for number in range(first >> _BLOCK_BITS, (last >> _BLOCK_BITS) + 1):
            block = self._blocks.get(number)
            if block is not None:
                at = bisect_left(block, first)
                if at < len(block) and block[at] <= last:
                    return True
        return False
