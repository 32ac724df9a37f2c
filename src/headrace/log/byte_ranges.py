"""A set of byte ranges, merged where they touch."""

from bisect import bisect_right


class ByteRanges:
    """Sorted, disjoint half-open ranges."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        if start >= end:
            return
        first = bisect_right(self._ends, start - 1)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def end_of(self, position: int) -> int:
        """The end of the range that holds `position`; `position` itself when none does."""
        found = bisect_right(self._starts, position)
        if found and self._ends[found - 1] > position:
            return self._ends[found - 1]
        return position

    def start_behind(self, position: int) -> int | None:
        """The start of the first range behind `position`."""
        found = bisect_right(self._starts, position)
        return self._starts[found] if found < len(self._starts) else None

    def __iter__(self) -> "zip[tuple[int, int]]":
        return zip(self._starts, self._ends, strict=True)
