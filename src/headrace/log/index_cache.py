"""Bounds the memory of closed segments' offset indexes: the oldest loaded go first."""

from collections import deque

from headrace.log.offset_index import OffsetIndex

DEFAULT_MAX_ENTRIES = 2 * 1024 * 1024  # 8 bytes each


class IndexCache:
    """Knows which indexes of closed segments are loaded. An active segment's is not its affair."""

    def __init__(self, max_entries: int = DEFAULT_MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._loaded: deque[tuple[OffsetIndex, int]] = deque()
        self._entries = 0

    def admit(self, index: OffsetIndex) -> None:
        """`index` was loaded, or its segment was closed."""
        count = len(index.offsets)
        self._loaded.append((index, count))
        self._entries += count
        # One whole turn of the ring at most: indexes that could not be written stay.
        for _ in range(len(self._loaded) - 1):
            if self._entries <= self._max_entries:
                break
            oldest, count = self._loaded.popleft()
            if oldest.has_pending:
                self._loaded.append((oldest, count))
                continue
            self._entries -= count
            oldest.unload()

    def release(self, index: OffsetIndex) -> None:
        """The segment is deleted or active again: stop counting its index."""
        kept = [pair for pair in self._loaded if pair[0] is not index]
        self._loaded = deque(kept)
        self._entries = sum(count for _, count in kept)
