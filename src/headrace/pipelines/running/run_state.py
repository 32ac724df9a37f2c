"""The runs of this machine: what each says of itself, whether it is alive, how it is stopped.

A run has a directory: `run.json` says what it is, `status.json` how it is doing. Both are
replaced whole, so a reader never sees half a file. Whether a run is alive is asked of the
operating system, never believed of a file.
"""

import contextlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.pipelines.errors import RunError
from headrace.process_lookup import Process, process_of

STARTING, RUNNING, WAITING, STOPPING = "starting", "running", "waiting for the bus", "stopping"
FINISHED, STOPPED, FAILED, DIED = "finished", "stopped", "failed", "died"
# A batch of the default size takes seconds; the longest that is usual ends within this.
STOP_TIMEOUT_S = 120.0

_RUNS, _RUN_FILE, _STATUS_FILE = "pipelines", "run.json", "status.json"


class RunDirectory:
    """Where one run keeps its state. Written by the run itself only."""

    def __init__(self, state_dir: Path, name: str) -> None:
        self.path = state_dir.absolute() / _RUNS / name
        self.name = name

    @property
    def lock_file(self) -> Path:
        """Held while the run is alive."""
        return self.path / "run.lock"

    @property
    def log_file(self) -> Path:
        """Where its Java process writes."""
        return self.path / "spark.log"

    @property
    def told_file(self) -> Path:
        """Every sentence the run told, with its time."""
        return self.path / "run.log"

    @property
    def default_checkpoint(self) -> Path:
        """The checkpoint of a run that was given none."""
        return self.path / "checkpoint"

    def begin(self, facts: Mapping[str, object], process: Process | None = None) -> None:
        """Say what this run is; it is this process unless another is named."""
        own = {"name": self.name, "process": process or process_of(), "started_at": _now_text()}
        write_whole(self.path / _RUN_FILE, {**own, **facts})
        self.update(STARTING)

    def update(
        self, state: str, message: str | None = None, progress: Mapping[str, object] | None = None
    ) -> None:
        """Say how it is doing."""
        status = {
            "state": state,
            "message": message,
            "updated_at": _now_text(),
            "progress": progress,
        }
        write_whole(self.path / _STATUS_FILE, status)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run as others see it."""

    name: str
    state: str
    message: str | None
    is_alive: bool
    process: Process
    run: Mapping[str, Any]
    updated_at: str | None = None
    progress: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, object]:
        """One object for programs."""
        facts = {name: value for name, value in self.run.items() if name not in ("name", "process")}
        return {
            "name": self.name,
            "state": self.state,
            "message": self.message,
            "is_alive": self.is_alive,
            "pid": self.process.pid,
            **facts,
            "updated_at": self.updated_at,
            "progress": self.progress,
        }


def all_runs(state_dir: Path) -> list[RunStatus]:
    """All runs that have a directory, by name, also those that ended."""
    directory = state_dir / _RUNS
    names = sorted(path.parent.name for path in directory.glob(f"*/{_RUN_FILE}"))
    found = (read_run(state_dir, name) for name in names)
    return [each for each in found if each is not None]


def find_run(state_dir: Path, name: str) -> RunStatus:
    """The run of this name; raises RunError if there never was one."""
    status = read_run(state_dir, name)
    if status is None:
        known = ", ".join(each.name for each in all_runs(state_dir))
        there_are = f"there are {known}" if known else "there is none at all"
        raise RunError(f"no run is called {name}; {there_are} in {state_dir / _RUNS}")
    return status


def read_run(state_dir: Path, name: str) -> RunStatus | None:
    """What a run says of itself, corrected by what the operating system says."""
    directory = state_dir / _RUNS / name
    run = _read(directory / _RUN_FILE)
    if run is None:
        return None
    status = _read(directory / _STATUS_FILE) or {}
    process = Process(*run["process"])
    is_alive = process.is_alive
    state, message = status.get("state", STARTING), status.get("message")
    if not is_alive and state in (STARTING, RUNNING, WAITING, STOPPING):
        state, message = DIED, "its process is gone; run it again and it goes on where it was"
    if state in (FINISHED, STOPPED, FAILED):
        is_alive = False  # its process may live on, with other runs in it
    return RunStatus(
        name,
        state,
        message,
        is_alive,
        process,
        run,
        status.get("updated_at"),
        status.get("progress"),
    )


def stop_run(state_dir: Path, name: str, timeout_s: float = STOP_TIMEOUT_S) -> RunStatus:
    """Ask a run to end after its batch and wait for that; raises RunError if it does not run."""
    status = find_run(state_dir, name)
    if not status.is_alive:
        raise RunError(f"run {name} does not run: it {_ended(status.state)}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(status.process.pid, signal.SIGTERM)
    if not status.process.wait(timeout_s):
        raise RunError(
            f"run {name} (process {status.process.pid}) has not ended within {timeout_s:g} s; its "
            "batch goes on and it ends after that; wait longer with --timeout"
        )
    return find_run(state_dir, name)


def write_whole(path: Path, content: Mapping[str, object]) -> None:
    """Replace a file by this content in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
    temporary.replace(path)


def _ended(state: str) -> str:
    return {FAILED: "failed", DIED: "died", STOPPED: "was stopped"}.get(state, state)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError):
        return None


def _now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
