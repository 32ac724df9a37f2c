"""A connection's receive buffer: the socket reads into it, requests are parsed where they lie.

Bytes in [start, end) are unread. The buffer grows only as bytes really
arrive, up to the size of the request that is coming in; a connection that has
fallen quiet gets its first size back.

Invariant: bytes that are lent out are never written over. Whoever keeps a view
into the buffer beyond the call that got it borrows its block, and gives it back
when the bytes are in their file; until then the next read goes to a new block.
"""

import mmap
from typing import Any

from headrace.broker.memory import MemoryBudget

# Measured: larger first buffers gain nothing and cost RSS on idle connections.
FIRST_SIZE = 64 * 1024
# The least room worth a read call; with less, unread bytes are moved to the front.
_MIN_READ = 4096
# Larger blocks come from the kernel, which clears a page when it is first written: to clear
# 100 MiB here, and to copy them each time a block is doubled, would stall everybody.
_LARGE_BYTES = 1024 * 1024


class Block:
    """Memory that a socket reads into, and how many borrow from it."""

    __slots__ = ("data", "is_large", "loans", "view")

    def __init__(self, capacity: int) -> None:
        self.is_large = capacity > _LARGE_BYTES
        memory = mmap.mmap(-1, capacity) if self.is_large else bytearray(capacity)
        self.view = memoryview(memory)
        # A bytearray, which is quicker to read from and can compare; of a large one its view.
        self.data: Any = self.view if self.is_large else memory
        self.loans = 0


class ReceiveBuffer:
    """Not shared: one connection, event-loop thread."""

    __slots__ = ("_budget", "_size", "block", "data", "end", "start", "view", "wanted")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size = FIRST_SIZE  # what of the block may be used: the rest is not paid for
        self._use(Block(FIRST_SIZE))
        self.start = 0
        self.end = 0
        self.wanted = 0  # bytes of the incomplete request at `start`, 0 when unknown

    def _use(self, block: Block) -> None:
        # Two attributes more: the way of every request goes through them.
        self.block, self.data, self.view = block, block.data, block.view

    @property
    def must_grow(self) -> bool:
        """The incoming request does not fit."""
        return self.wanted > self._size

    def grow(self) -> bool:
        """Grow if the incoming request needs it; False when the budget does not allow it.

        The old bytes are left alone: views into them stay good.
        """
        size = self._size
        if self.wanted <= size or 2 * (self.end - self.start) < size:
            return True
        size = min(self.wanted, 2 * size)
        if not self._budget.take(size - self._size):
            return False
        self._size = size
        if size > len(self.data):
            # Pages cost nothing before they are written: a large block is made once.
            self._move_to(Block(size if size <= _LARGE_BYTES else self.wanted))
        return True

    def make_room(self) -> memoryview:
        """Return where the next read may write; never empty after `grow` said yes."""
        unread = self.end - self.start
        size = self._size
        if self.block.loans:
            self._move_to(Block(len(self.data)))
        elif not unread:
            self.start = self.end = 0
        elif self.start and (size - self.end < _MIN_READ or self.start + self.wanted > size):
            self.view[:unread] = self.view[self.start : self.end]
            self.start, self.end = 0, unread
        return self.view[self.end : size]

    @property
    def is_grown(self) -> bool:
        """It holds more than its first size."""
        return self._size > FIRST_SIZE

    def shrink(self) -> None:
        """Go back to the first size if nothing is unread."""
        if self.start == self.end and self.is_grown:
            self._give_back()
            self._move_to(Block(FIRST_SIZE))

    def release(self) -> None:
        """The connection is gone: give back what was taken from the budget."""
        self._give_back()
        self._use(Block(0))
        self.start = self.end = 0

    def _give_back(self) -> None:
        taken, self._size = self._size - FIRST_SIZE, FIRST_SIZE
        if taken > 0:
            self._budget.give_back(taken)

    def _move_to(self, block: Block) -> None:
        """Go on in another block with what is unread; the old one stays with its borrowers."""
        unread = self.end - self.start
        block.view[:unread] = self.view[self.start : self.end]
        self._use(block)
        self.start, self.end = 0, unread
