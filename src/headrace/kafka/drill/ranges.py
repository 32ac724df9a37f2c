"""A set of sequence numbers, kept as ranges.

Numbers that come in order cost one entry, however many they are; memory grows with the
gaps alone, 16 bytes each. Ranges are half-open, sorted, and never touch.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Self


class Ranges:
    """Not thread-safe: each has one writer."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._ends = array("q")
        self.count = 0

    @classmethod
    def of(cls, start: int, end: int) -> Self:
        """All numbers from `start` to before `end`."""
        ranges = cls()
        ranges._append(start, end)
        return ranges

    def add(self, number: int) -> bool:
        """Take a number in; False when it was there already."""
        starts, ends = self._starts, self._ends
        if ends and number == ends[-1]:  # the usual case: the next one
            ends[-1] += 1
            self.count += 1
            return True
        after = bisect_right(starts, number)
        before = after - 1
        if before >= 0 and number < ends[before]:
            return False
        joins_before = before >= 0 and ends[before] == number
        joins_after = after < len(starts) and starts[after] == number + 1
        if joins_before and joins_after:
            ends[before] = ends[after]
            del starts[after], ends[after]
        elif joins_before:
            ends[before] += 1
        elif joins_after:
            starts[after] -= 1
        else:
            starts.insert(after, number)
            ends.insert(after, number + 1)
        self.count += 1
        return True

    def minus(self, other: "Ranges") -> "Ranges":
        """The numbers that are here and not in `other`."""
        rest = Ranges()
        taken = list(other)
        index = 0
        for start, end in self:
            while index < len(taken) and taken[index][1] <= start:
                index += 1
            at = start
            for number in range(index, len(taken)):
                taken_start, taken_end = taken[number]
                if taken_start >= end:
                    break
                rest._append(at, min(taken_start, end))
                at = max(at, taken_end)
            rest._append(at, end)
        return rest

    def __contains__(self, number: int) -> bool:
        before = bisect_right(self._starts, number) - 1
        return before >= 0 and number < self._ends[before]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The ranges, in order, as (start, end)."""
        return zip(self._starts, self._ends, strict=True)

    def _append(self, start: int, end: int) -> None:
        if start < end:
            self._starts.append(start)
            self._ends.append(end)
            self.count += end - start
