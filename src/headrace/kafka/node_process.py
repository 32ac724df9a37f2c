"""The Java process of one node's directory: there is at most one, and anybody may find it.

Invariants. A lock on the directory is taken before Java starts and inherited by it, so it is
held as long as Java lives; Kafka's own lock comes too late, a second node writes into the live
metadata log first. A signal goes only to the process whose number *and* start time were written
down when it was started, or that has this directory's configuration on its command line.
"""

import atexit
import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from headrace.file_lock import FileLock, LockedError, is_locked
from headrace.kafka import process
from headrace.kafka.errors import NodeError
from headrace.kafka.jvm import java_environment
from headrace.patience import Patience
from headrace.process_lookup import Process, process_of

_LOCK_FILE = ".headrace.lock"
# Who merely looks, or starts a node, holds a lock for a moment.
LOCK_TIMEOUT_S = 1.0
_RUN_FILE = "run.json"
MAIN_CLASS = "kafka.Kafka"
_PAUSE_S = 0.02
# A killed process is gone at once, unless its machine is out of breath.
_KILL_PATIENCE_S = 60.0
_STOP_PATIENCE_S = 10.0  # until every thread of a paused one stands

# Processes this one has started: only their parent can clear them away and knows how they ended.
_children: dict[Process, subprocess.Popen[bytes]] = {}


class NodeProcess:
    """Finds, starts and signals the Java process that runs in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.properties_file = directory / "server.properties"
        self._run_file = directory / _RUN_FILE

    @property
    def child(self) -> subprocess.Popen[bytes] | None:
        """The process as its parent knows it; None when another process started it."""
        return _children.get(_named_in(self.facts()))

    def facts(self) -> dict[str, Any]:
        """What was written down when it was last started; empty if it never was."""
        try:
            found: dict[str, Any] = json.loads(self._run_file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    def find(self) -> psutil.Process | None:
        """The process that runs here now, if one does."""
        known = _named_in(self.facts())
        child = _children.get(known)
        if child is not None and child.poll() is not None:
            return None
        if known.is_alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                return psutil.Process(known.pid)
        # Whoever started it may have been killed before it wrote that down.
        return self._search() if is_locked(self.directory / _LOCK_FILE) else None

    def take_lock(self) -> FileLock:
        """Reserve the directory and return the lock; NodeError while a node runs in it."""
        try:
            return FileLock(self.directory / _LOCK_FILE, timeout_s=LOCK_TIMEOUT_S)
        except LockedError as error:
            raise NodeError(
                f"another Kafka node runs in {self.directory}; stop it or choose another directory"
            ) from error

    def launch(
        self,
        command: Sequence[str | Path],
        *,
        lock: FileLock,
        output: Path,
        is_tied: bool,
        **facts: Any,
    ) -> None:
        """Start Java with the lock and write down who it is, with `facts`; takes the lock over."""
        try:
            output.unlink(missing_ok=True)
            child = process.start(
                command,
                output=output,
                env=java_environment(),
                cwd=self.directory,
                pass_fds=[lock.fileno()],
                is_tied=is_tied,
            )
        finally:
            lock.close()
        # It cannot be gone, even if it has ended: it waits for its parent, which is us.
        known = process_of(child.pid)
        facts |= known._asdict()
        _children[known] = child
        temporary = self._run_file.with_suffix(".new")
        temporary.write_text(json.dumps(facts), "utf-8")
        temporary.rename(self._run_file)

    def pause(self) -> bool:
        """Let it stand still and return when it does; False when nothing runs here."""
        found = self._send(signal.SIGSTOP)
        if found is None:
            return False
        patience = Patience(_STOP_PATIENCE_S, first_pause_s=_PAUSE_S, longest_pause_s=_PAUSE_S)
        return patience.until(lambda: is_paused(found)) is True

    def resume(self) -> bool:
        """Let it go on; False when nothing runs here."""
        return self._send(signal.SIGCONT) is not None

    def _send(self, number: signal.Signals) -> psutil.Process | None:
        found = self.find()
        with contextlib.suppress(psutil.NoSuchProcess), self._allowed():
            if found is not None:
                found.send_signal(number)  # psutil looks at the start time once more
                return found
        return None

    def stop(self, grace_s: float) -> bool:
        """Ask with SIGTERM, insist with SIGKILL after `grace_s`; False when that was needed."""
        found = self.find()
        if found is None:
            return True
        known = process_of(found.pid)  # now: a process that has ended has no start time
        with contextlib.suppress(psutil.NoSuchProcess), self._allowed():
            if grace_s > 0:
                found.terminate()
                found.resume()  # a paused one would not hear of it
                if _await_end(known, grace_s):
                    return True
            found.kill()
            if not _await_end(known, _KILL_PATIENCE_S):
                raise NodeError(
                    f"process {found.pid} in {self.directory} is still there "
                    f"{_KILL_PATIENCE_S:.0f} s after SIGKILL"
                )
            return False
        return True

    @contextlib.contextmanager
    def _allowed(self) -> Iterator[None]:
        try:
            yield
        except psutil.AccessDenied as error:
            raise NodeError(f"the node in {self.directory} is another user's process") from error

    def _search(self) -> psutil.Process | None:
        ours = {MAIN_CLASS, str(self.properties_file)}
        for found in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if ours <= {*found.cmdline()}:
                    return found
        return None


@atexit.register
def _let_go() -> None:
    """Those that outlive us are nobody's to wait for; Python would warn of each."""
    for child in _children.values():
        if child.poll() is None:
            child.returncode = 0


def _await_end(known: Process, timeout_s: float) -> bool:
    if (child := _children.get(known)) is None:
        return known.wait(timeout_s)
    try:
        child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def is_paused(found: psutil.Process) -> bool:
    """Whether it was stopped by SIGSTOP."""
    try:
        return found.status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def _named_in(facts: Mapping[str, Any]) -> Process:
    return Process(facts.get("pid", 0), facts.get("start", ""))
