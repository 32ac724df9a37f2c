"""One run at a time: a lock on a file that the operating system lets go of when its owner dies.

The file also says who holds it. A driver that was killed leaves its Java process alive for a
moment, which may still write; the next owner waits for that too.
"""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.errors import RunError
from headrace.pipelines.running.process import Process, process_of

# A Java process whose Python has died notices by a closed pipe and ends within a second or two;
# one that is still there after this long hangs.
ORPHAN_TIMEOUT_S = 60.0


class Lock:
    """Held from `Lock(…)` to `close`; raises RunError if another run holds it."""

    def __init__(self, path: Path, *, what: str, run_name: str) -> None:
        self._path = path
        self._owner: dict[str, object] = {"run": run_name, "process": process_of()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RunError(
                f"{what}: cannot write {error.filename or path}: {error.strerror}; choose a "
                "directory you may write with --state-dir or --checkpoint"
            ) from error
        try:
            self._take(what)
        except BaseException:
            os.close(self._fd)
            raise
        self._write()

    def add_java(self, pid: int) -> None:
        """Note the Java process that works for the owner."""
        self._owner["java"] = process_of(pid)
        self._write()

    def close(self) -> None:
        """Let others have it."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _take(self, what: str) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = self._read()
            who = f"run {owner['run']} (process {owner['process'][0]})" if owner else "another run"
            name = owner["run"] if owner else "NAME"
            raise RunError(
                f"{what} is in use by {who}; end it with 'headrace pipeline stop {name}' "
                "or choose another"
            ) from None
        former = self._read()
        if former and "java" in former:
            java = Process(*former["java"])
            if not java.wait(ORPHAN_TIMEOUT_S):
                raise RunError(
                    f"{what}: Java process {java.pid} of a run that died is still at work; "
                    "end it and start again"
                )

    def _read(self) -> dict[str, Any] | None:
        try:
            return dict(json.loads(self._path.read_text("utf-8")))
        except (OSError, ValueError):
            return None

    def _write(self) -> None:
        text = json.dumps(self._owner).encode()
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text, 0)
