"""Clears away what a test process leaves behind when it is killed: a process that outlives it.

    with entrusted("directory", path):
        ...

The janitor reads from a pipe whose other end only we hold. When the pipe ends, however we did,
it ends the processes, unmounts and removes the directories that it was told of and that nobody
has taken back. It is this file, run as a program: hence nothing of headrace.testing here.
"""

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import psutil

from headrace.patience import Patience
from headrace.process_lookup import Process, process_of

# In this order: what runs keeps files open, and what is mounted cannot be removed.
Kind = Literal["process", "environment", "mount", "directory"]
_ORDER: tuple[Kind, ...] = ("process", "environment", "mount", "directory")
_GRACE_S = 20.0  # a database that is asked to end at once, on a busy machine
_KILL_PATIENCE_S = 60.0
_LONGEST_PAUSE_S = 0.1
# Whatever we import from, and none of what Python's own start would run.
_PROGRAM = (
    "import runpy, sys; sys.path[:] = sys.argv[2:]; runpy.run_path(sys.argv[1], None, '__main__')"
)


class CleanupTask(NamedTuple):
    """One thing to clear away. `value` is a number for a process, a path or NAME=VALUE else."""

    kind: Kind
    value: str
    started: str = ""  # of a process, so that its number is not taken for another's
    signal: int = signal.SIGKILL


class Janitor:
    """The process, as the one that it cleans for sees it. For any thread."""

    def __init__(self) -> None:
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, __file__, *map(os.path.abspath, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},  # it is none of those that bear our marks
            start_new_session=True,  # what is sent to all of us is not sent to it
        )
        atexit.register(self.dismiss)

    def entrust(self, entry: CleanupTask) -> int:
        """Have it cleared away unless it is taken back; return the number to do so by."""
        self._count += 1
        number = self._count
        self._tell({"number": number, "entry": entry})
        return number

    def take_back(self, number: int) -> None:
        """Leave it alone: whoever made it has cleared it away."""
        self._tell({"number": number})

    def dismiss(self) -> None:
        """Let it do what is left to do, and wait for it."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # killed, or dismissed
            # One write: threads do not mix their lines.
            os.write(self._process.stdin.fileno(), (json.dumps(line) + "\n").encode())


@functools.cache
def _janitor_of(_pid: int) -> Janitor:
    return Janitor()


def entrust(kind: Kind, value: object, sent: signal.Signals = signal.SIGKILL) -> int:
    """Have something cleared away when this process is killed; see `CleanupTask`.

    A process gets the signal `sent`, and SIGKILL if it does not end by that.
    """
    started = process_of(int(str(value))).start if kind == "process" else ""
    return _janitor_of(os.getpid()).entrust(CleanupTask(kind, str(value), started, sent))


def take_back(number: int) -> None:
    """Undo `entrust`: it is cleared away, or not to be."""
    _janitor_of(os.getpid()).take_back(number)


@contextlib.contextmanager
def entrusted(kind: Kind, value: object, sent: signal.Signals = signal.SIGKILL) -> Iterator[None]:
    """`entrust` for the time of the block, which clears away itself."""
    number = entrust(kind, value, sent)
    try:
        yield
    finally:
        take_back(number)


@contextlib.contextmanager
def temporary_directory(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A directory for the time of the block, which goes even if this process is killed."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    with entrusted("directory", path):
        try:
            yield path
        finally:
            _remove(path)


def _remove(path: Path) -> None:
    """As far as it can be; a server that was just killed may still be writing."""
    patience = Patience(_GRACE_S, longest_pause_s=_LONGEST_PAUSE_S)
    while path.exists():
        shutil.rmtree(path, ignore_errors=True)
        if path.exists() and not patience.pause():
            return


def _bearers(mark: str) -> Iterator[CleanupTask]:
    """The processes that were started with this in their environment."""
    name, _, value = mark.partition("=")
    for found in psutil.process_iter(["environ"]):
        if (found.info["environ"] or {}).get(name) == value:
            yield CleanupTask("process", str(found.pid), process_of(found.pid).start)


def _end(entries: Iterable[CleanupTask]) -> None:
    """Send each process its signal, and SIGKILL to those that do not end by it."""
    alive = [each for each in entries if _lives(each)]
    for number, patience_s in ((None, _GRACE_S), (signal.SIGKILL, _KILL_PATIENCE_S)):
        for each in alive:
            with contextlib.suppress(OSError):
                os.kill(int(each.value), number or each.signal)
        patience = Patience(patience_s, longest_pause_s=_LONGEST_PAUSE_S)
        while alive and patience.pause():
            alive = [each for each in alive if _lives(each)]


def _lives(entry: CleanupTask) -> bool:
    return Process(int(entry.value), entry.started).is_alive


def _clear(entries: Sequence[CleanupTask]) -> None:
    by_kind: dict[Kind, list[str]] = {kind: [] for kind in _ORDER}
    for each in entries:
        by_kind[each.kind].append(each.value)
    _end(each for each in entries if each.kind == "process")
    _end(found for mark in by_kind["environment"] for found in _bearers(mark))
    for path in reversed(by_kind["mount"]):
        subprocess.run(["umount", "--lazy", path], check=False)
    for path in reversed(by_kind["directory"]):
        _remove(Path(path))


def main(lines: IO[bytes]) -> None:
    """Read what there is to do until the pipe ends, then do it."""
    entries = dict[int, CleanupTask]()
    for line in lines:
        told = json.loads(line)
        if "entry" in told:
            entries[told["number"]] = CleanupTask(*told["entry"])
        else:
            entries.pop(told["number"], None)
    _clear([*entries.values()])


if __name__ == "__main__":
    main(sys.stdin.buffer)
