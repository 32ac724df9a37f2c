"""A connection's receive buffer: the socket reads into it, requests are parsed where they lie.

Bytes in [start, end) are unread. The buffer grows only as bytes really
arrive, up to the size of the request that is coming in; a connection that has
fallen quiet gets its first size back.

Invariant: bytes that are lent out are never written over. Whoever keeps a view
into the buffer beyond the call that got it borrows its block, and gives it back
when the bytes are in their file; until then the next read goes to a new block.
"""

from headrace.broker.memory import MemoryBudget

# Measured: larger first buffers gain nothing and cost RSS on idle connections.
FIRST_SIZE = 64 * 1024
# The least room worth a read call; with less, unread bytes are moved to the front.
_MIN_READ = 4096


class Block:
    """Memory that a socket reads into, and how many borrow from it."""

    __slots__ = ("data", "loans", "view")

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)
        self.view = memoryview(self.data)
        self.loans = 0


class ReceiveBuffer:
    """Not shared: one connection, event-loop thread."""

    __slots__ = ("_budget", "block", "data", "end", "start", "view", "wanted")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._use(Block(FIRST_SIZE))
        self.start = 0
        self.end = 0
        self.wanted = 0  # bytes of the incomplete request at `start`, 0 when unknown

    def _use(self, block: Block) -> None:
        # Two attributes more: the way of every request goes through them.
        self.block, self.data, self.view = block, block.data, block.view

    def grow(self) -> bool:
        """Grow if the incoming request needs it; False when the budget does not allow it.

        The old bytes are left alone: views into them stay good.
        """
        size = len(self.data)
        if self.wanted > size and 2 * (self.end - self.start) >= size:
            return self._resize(min(self.wanted, 2 * size))
        return True

    def make_room(self) -> memoryview:
        """Return where the next read may write; never empty after `grow` said yes."""
        unread = self.end - self.start
        size = len(self.data)
        if self.block.loans:
            self._move_to(Block(size))
        elif not unread:
            self.start = self.end = 0
        elif size - self.end < _MIN_READ or self.start + self.wanted > size:
            self.data[:unread] = self.data[self.start : self.end]
            self.start, self.end = 0, unread
        return self.view[self.end :]

    @property
    def is_grown(self) -> bool:
        """It holds more than its first size."""
        return len(self.data) > FIRST_SIZE

    def shrink(self) -> None:
        """Go back to the first size if nothing is unread."""
        if self.start == self.end and self.is_grown:
            self._resize(FIRST_SIZE)

    def release(self) -> None:
        """The connection is gone: give back what was taken from the budget."""
        taken = max(0, len(self.data) - FIRST_SIZE)
        self._use(Block(0))
        self.start = self.end = 0
        if taken:
            self._budget.give_back(taken)

    def _resize(self, size: int) -> bool:
        old = len(self.data)
        if size > old and not self._budget.take(size - old):
            return False
        self._move_to(Block(size))
        if size < old:
            self._budget.give_back(old - size)
        return True

    def _move_to(self, block: Block) -> None:
        """Go on in another block with what is unread; the old one stays with its borrowers."""
        unread = self.end - self.start
        block.data[:unread] = self.view[self.start : self.end]
        self._use(block)
        self.start, self.end = 0, unread
