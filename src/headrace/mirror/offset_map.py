"""Which target offset a source offset became: a bounded list of exact pairs.

Between two pairs that are equally far apart on both sides lies no gap, and every offset between
is known by counting on. Gaps (compaction, aborted messages, markers of transactions) need a
reading of the source between two pairs: `interval` says which.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

# Enough that a reading between two pairs stays short, few enough for a record in the state topic.
MAX_PAIRS = 128


class Pair(NamedTuple):
    """As many records as `target` lie before `source`, the offset of a record or a gap."""

    source: int
    target: int


class Interval(NamedTuple):
    """Two neighbouring pairs around an offset; `high` is None behind the newest."""

    low: Pair
    high: Pair | None


class OffsetMap:
    """Grows at its end. The first pair is where the copy began."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._pairs = [Pair(*each) for each in pairs]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(self._pairs)

    @property
    def newest(self) -> Pair:
        return self._pairs[-1]

    def add(self, source: int, target: int) -> None:
        """Note that `target` records lie before `source`; must not lie behind the newest."""
        pair = Pair(source, target)
        pairs = self._pairs
        if pair.source <= pairs[-1].source:
            return
        if len(pairs) > 1 and _gap(pairs[-2], pairs[-1]) == 0 == _gap(pairs[-1], pair):
            pairs[-1] = pair  # on one line: the middle says nothing
        else:
            pairs.append(pair)
        if len(pairs) > MAX_PAIRS:
            # Every other one of the older half; recent places are those groups stand at.
            half = MAX_PAIRS // 2
            self._pairs = [pairs[0], *pairs[1:half:2], *pairs[half:]]

    def interval(self, source: int) -> Interval:
        """The pairs around an offset; one before the first pair belongs to the first."""
        index = max(bisect_right(self._pairs, source, key=lambda each: each.source) - 1, 0)
        has_next = index + 1 < len(self._pairs)
        return Interval(self._pairs[index], self._pairs[index + 1] if has_next else None)

    def exact(self, source: int) -> int | None:
        """The target offset, if it takes no reading; None where there are gaps around.

        An offset before the copy's beginning becomes 0, one behind its end becomes the end.
        """
        low, high = self.interval(source)
        if source <= low.source or high is None:
            return low.target
        if _gap(low, high) == 0:
            return low.target + source - low.source
        return low.target if high.target == low.target else None


def _gap(low: Pair, high: Pair) -> int:
    return (high.source - low.source) - (high.target - low.target)
