"""Processes by number and start time: a number alone may by now be somebody else's."""

import os
from typing import NamedTuple

import psutil

from headrace.patience import Patience

_LONGEST_PAUSE_S = 0.1


class Process(NamedTuple):
    """One process of this machine, now or at some time. `start` is only compared."""

    pid: int
    start: str

    @property
    def is_alive(self) -> bool:
        """Whether it runs; a process that merely waits to be buried does not."""
        return self.start != "" and _start_of(self.pid) == self.start

    def wait(self, timeout_s: float) -> bool:
        """Return True when it has ended, False when the time is over."""
        patience = Patience(timeout_s, first_pause_s=0.02, longest_pause_s=_LONGEST_PAUSE_S)
        return patience.until(lambda: not self.is_alive) is True


def process_of(pid: int | None = None) -> Process:
    """The process that has this number now; this one if none is given."""
    number = os.getpid() if pid is None else pid
    return Process(number, _start_of(number))


def _start_of(pid: int) -> str:
    """When the process started, in hundredths since the machine did; empty if there is none.

    Not by the wall's clock: when that is set, psutil moves the boot and with it every process. Nor
    by a boot that moved between two looks at it, as it does by a second now and then.
    """
    booted_s = psutil.boot_time()
    try:
        process = psutil.Process(pid)
        started_s = process.create_time()
        is_ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return ""
    if psutil.boot_time() != booted_s:
        return _start_of(pid)
    return "" if is_ended else str(round(100 * (started_s - booted_s)))
