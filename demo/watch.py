"""Looks at the demo from outside, as any tool could: the topics' ends and the groups' positions.

Each pipeline commits its position to a consumer group of its name, so nothing here asks Spark.
"""

import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.client.errors import BusError

# Pipelines commit once a batch: a rate over less than this would only show the batches.
_RATE_SECONDS = 5.0


class Progress(NamedTuple):
    """What there was at one moment."""

    at_s: float
    sent: int
    done: dict[str, int]  # by group; 0 before its first commit
    dead_letters: int

    def lag(self, group: str) -> int:
        return max(0, self.sent - self.done[group])


class Watcher:
    """Keeps every look it took. Used by one thread."""

    def __init__(
        self, bootstrap: str, topic: str, *, groups: Sequence[str], dead_letter_topic: str
    ) -> None:
        self.groups = tuple(groups)
        self.looks: list[Progress] = []
        self._topic, self._dead_letter_topic = topic, dead_letter_topic
        self._admin = Admin(Bus(bootstrap))
        self._started_at = time.monotonic()

    def look(self) -> Progress:
        """Look once more."""
        ends = self._ends()
        done = {group: self._done(group) for group in self.groups}
        at_s = time.monotonic() - self._started_at
        look = Progress(at_s, ends[self._topic], done, ends.get(self._dead_letter_topic, 0))
        self.looks.append(look)
        return look

    def _ends(self) -> dict[str, int]:
        known = self._admin.metadata().topics
        topics = [name for name in (self._topic, self._dead_letter_topic) if name in known]
        ends = dict.fromkeys(topics, 0)
        wanted = [(topic, number) for topic in topics for number in known[topic].partitions]
        for (topic, _), end in self._admin.end_offsets(wanted).items():
            ends[topic] += end
        return ends

    def _done(self, group: str) -> int:
        with contextlib.suppress(BusError):  # the group is not there yet
            offsets = self._admin.group_offsets(group)
            return sum(offset for (topic, _), offset in offsets.items() if topic == self._topic)
        return 0


def rates_in(looks: Sequence[Progress], counts: Sequence[int]) -> list[float]:
    """Per look, messages a second since the look some seconds before."""
    rates = []
    first = 0
    for index, look in enumerate(looks):
        while first < index - 1 and look.at_s - looks[first + 1].at_s >= _RATE_SECONDS:
            first += 1
        seconds = look.at_s - looks[first].at_s
        rates.append((counts[index] - counts[first]) / seconds if seconds > 0 else 0.0)
    return rates
