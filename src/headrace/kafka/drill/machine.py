"""How busy the machine was with other things than the drill: whether a long wait says anything.

Counted is CPU time: what all cores had, less what they idled, less what the drill and the
cluster's nodes took. A hypervisor that lends the cores to others (steal) counts as others.
"""

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import psutil

# A quarter of all cores: of two, half a one. JVMs that start and elections then take longer than
# on the same machine alone, and nobody can tell by how much.
BUSY_SHARE = 0.25
# Longer waits without a fault: leaders have moved, or the machine is busy.
CALM_WAIT_S = 0.5
_EVERY_S = 0.5


class CpuReading(NamedTuple):
    """CPU time up to now: of all cores, idle or not, of it in use, and by process of ours."""

    capacity_s: float
    used_s: float
    ours_s: Mapping[Hashable, float]


class CpuSample(NamedTuple):
    """What had been used at `at_s`, by anybody and by us, of what there was."""

    at_s: float
    capacity_s: float
    used_s: float
    ours_s: float


def others_share(samples: Sequence[CpuSample], start_s: float, end_s: float) -> float | None:
    """The share of all CPU time between two times that was not ours; None where nobody looked."""
    before = [each for each in samples if each.at_s <= start_s] or samples[:1]
    after = [each for each in samples if each.at_s >= end_s] or samples[-1:]
    if not before or after[0].capacity_s <= before[-1].capacity_s:
        return None
    first, last = before[-1], after[0]
    others_s = (last.used_s - first.used_s) - (last.ours_s - first.ours_s)
    return min(1.0, max(0.0, others_s / (last.capacity_s - first.capacity_s)))


class CpuWatch(threading.Thread):
    """Looks twice a second, from `start` to `stop`."""

    def __init__(self, read: Callable[[], CpuReading], now_s: Callable[[], float]) -> None:
        super().__init__(name="drill-cpu", daemon=True)
        self._read, self._now_s = read, now_s
        self._samples = list[CpuSample]()
        self._last: Mapping[Hashable, float] | None = None
        self._ours_s = 0.0
        self._is_stopping = threading.Event()

    def run(self) -> None:
        self.look()
        while not self._is_stopping.wait(_EVERY_S):
            self.look()

    def stop(self) -> None:
        self._is_stopping.set()
        if self.is_alive():
            self.join()

    def look(self) -> None:
        """Take one sample. A process that is new has used all its time since the last one."""
        capacity_s, used_s, ours = self._read()
        if self._last is not None:
            self._ours_s += sum(
                max(0.0, time_s - self._last.get(each, 0.0)) for each, time_s in ours.items()
            )
        self._last = ours
        self._samples.append(CpuSample(self._now_s(), capacity_s, used_s, self._ours_s))

    def others_share(self, start_s: float, end_s: float) -> float | None:
        """See the function of this name."""
        return others_share([*self._samples], start_s, end_s)


def read_cpu(pids: Iterable[int | None]) -> CpuReading:
    """Look at all cores, at this process and at those of `pids`."""
    times = psutil.cpu_times()
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # user's already
    capacity_s = sum(times) - guests
    idle_s = times.idle + getattr(times, "iowait", 0.0)
    ours = dict[Hashable, float]()
    for pid in {os.getpid(), *pids} - {None}:
        try:
            process = psutil.Process(pid)
            spent = process.cpu_times()
            ours[process.pid, process.create_time()] = spent.user + spent.system
        except psutil.Error:  # just gone
            continue
    return CpuReading(capacity_s, capacity_s - idle_s, ours)
