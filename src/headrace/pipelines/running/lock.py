"""One run at a time: a lock on a file that the operating system lets go of when its owner dies.

The file also says who holds it. A driver that was killed leaves its Java process alive for a
moment, which may still write; the next owner waits for that too.
"""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.file_lock import FileLock, LockedError
from headrace.pipelines.errors import RunError
from headrace.process_lookup import Process, process_of

# A Java process whose Python has died notices by a closed pipe and ends within a second or two;
# one that is still there after this long hangs.
ORPHAN_TIMEOUT_S = 60.0


class Lock:
    """Held from `Lock(…)` to `close`; raises RunError if another run holds it."""

    def __init__(self, path: Path, *, what: str, run_name: str) -> None:
        self._owner: dict[str, object] = {"run": run_name, "process": process_of()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path)
        except OSError as error:
            raise RunError(
                f"{what}: cannot write {error.filename or path}: {error.strerror}; choose a "
                "directory you may write with --state-dir or --checkpoint"
            ) from error
        except LockedError as error:
            owner = _owner_in(error.note)
            who = f"run {owner['run']} (process {owner['process'][0]})" if owner else "another run"
            name = owner["run"] if owner else "NAME"
            raise RunError(
                f"{what} is in use by {who}; end it with 'headrace pipeline stop {name}' "
                "or choose another"
            ) from None
        try:
            _await_orphan(_owner_in(self._lock.former_note), what)
            self._write()
        except BaseException:
            self._lock.close()
            raise

    def add_java(self, pid: int) -> None:
        """Note the Java process that works for the owner."""
        self._owner["java"] = process_of(pid)
        self._write()

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self) -> None:
        self._lock.write(json.dumps(self._owner))


def _owner_in(note: str) -> dict[str, Any]:
    try:
        return dict(json.loads(note))
    except ValueError:
        return {}


def _await_orphan(former: dict[str, Any], what: str) -> None:
    """Wait for the Java process of an owner that died."""
    if "java" not in former:
        return
    java = Process(*former["java"])
    if not java.wait(ORPHAN_TIMEOUT_S):
        raise RunError(
            f"{what}: Java process {java.pid} of a run that died is still at work; "
            "end it and start again"
        )
