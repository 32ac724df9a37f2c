"""When acknowledgements came and how long their messages had waited, in slots of a tenth second.

An hour takes half a megabyte for each publisher, whatever the rate.
"""

from array import array
from collections.abc import Sequence
from math import floor
from typing import NamedTuple

SLOT_S = 0.1
SHORTEST_GAP_S = 0.25  # shorter pauses are a busy machine, not a fault


class Gap(NamedTuple):
    """A publisher got no acknowledgement from `start_s` to `end_s`."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


class Wait(NamedTuple):
    """A message that waited `seconds` for its acknowledgement, which came at about `at_s`."""

    at_s: float
    seconds: float


NO_GAP = Gap(0.0, 0.0)
NO_WAIT = Wait(0.0, 0.0)


class AckSeries:
    """One publisher's acknowledgements. Belongs to its thread; others may read."""

    def __init__(self) -> None:
        self.counts = array("L")
        self.longest_s = array("d")
        self.gaps = list[Gap]()
        self.last_at_s: float | None = None

    def add(self, at_s: float, waited_s: float) -> None:
        """A message was acknowledged, or given up, at `at_s` after `waited_s`."""
        slot = floor(at_s / SLOT_S)
        missing = slot + 1 - len(self.counts)
        if missing > 0:
            # longest_s first: a reader goes by the length of counts
            self.longest_s.extend([0.0] * missing)
            self.counts.extend([0] * missing)
        self.counts[slot] += 1
        if waited_s > self.longest_s[slot]:
            self.longest_s[slot] = waited_s
        if self.last_at_s is not None and at_s - self.last_at_s >= SHORTEST_GAP_S:
            self.gaps.append(Gap(self.last_at_s, at_s))
        self.last_at_s = at_s

    def longest_wait(self, start_s: float, end_s: float) -> Wait:
        """The longest wait that ended between the two times."""
        first, last = floor(start_s / SLOT_S), floor(end_s / SLOT_S) + 1
        slots = range(first, min(last, len(self.counts)))
        waits = (Wait(slot * SLOT_S, self.longest_s[slot]) for slot in slots)
        return max(waits, key=lambda wait: wait.seconds, default=NO_WAIT)

    def longest_gap(self, start_s: float, end_s: float) -> Gap:
        """The longest gap that ended between the two times."""
        gaps = (gap for gap in self.gaps if start_s <= gap.end_s < end_s)
        return max(gaps, key=lambda gap: gap.seconds, default=NO_GAP)


def longest_wait(series: Sequence[AckSeries], start_s: float, end_s: float) -> Wait:
    """The longest wait of all publishers."""
    waits = (each.longest_wait(start_s, end_s) for each in series)
    return max(waits, key=lambda wait: wait.seconds, default=NO_WAIT)


def longest_gap(series: Sequence[AckSeries], start_s: float, end_s: float) -> Gap:
    """The longest time that one publisher got no acknowledgement at all."""
    gaps = (each.longest_gap(start_s, end_s) for each in series)
    return max(gaps, key=lambda gap: gap.seconds, default=NO_GAP)


class Second(NamedTuple):
    """All publishers' acknowledgements of one second."""

    at_s: int
    acknowledged: int
    longest_wait_s: float


def by_second(series: Sequence[AckSeries]) -> list[Second]:
    """The course of the drill, second by second, for the report and the plot."""
    slots = round(1 / SLOT_S)
    length = max((len(each.counts) for each in series), default=0)
    seconds = list[Second]()
    for at_s in range(-(-length // slots)):
        part = slice(at_s * slots, (at_s + 1) * slots)
        seconds.append(
            Second(
                at_s,
                sum(sum(each.counts[part]) for each in series),
                max((max(each.longest_s[part], default=0.0) for each in series), default=0.0),
            )
        )
    return seconds
