"""Processes by number and start time: a number alone may by now be somebody else's."""

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

_START_FIELD = 22 - 3  # of /proc/PID/stat, behind the name in brackets, which may hold blanks
_STATE_FIELD = 0
_PAUSE_S = 0.1


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
        deadline = time.monotonic() + timeout_s
        while self.is_alive:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_S)
        return True


def process_of(pid: int | None = None) -> Process:
    """The process that has this number now; this one if none is given."""
    number = os.getpid() if pid is None else pid
    return Process(number, _start_of(number))


def _start_of(pid: int) -> str:
    """When the process started, as some text; empty if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _start_by_ps(pid)
    fields = stat.rpartition(")")[2].split()
    return "" if fields[_STATE_FIELD] == "Z" else fields[_START_FIELD]


def _start_by_ps(pid: int) -> str:
    # Where there is no /proc (macOS), ps tells the second.
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
