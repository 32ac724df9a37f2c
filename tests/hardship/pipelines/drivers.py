"""Pipelines as a user runs them, as processes that can be killed and started again."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
from tests.hardship.conftest import wait_until

_PATIENCE_SECONDS = 300.0
# A life lasts seconds: the second compiler never pays back, and its start is what takes the time.
_QUICK = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_SPARK, _LAUNCHER = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.launcher.Main"


class Driver:
    """One `headrace pipeline run`, over all its lives; its checkpoint stays, its processes die."""

    def __init__(
        self, name: str, directory: Path, bootstrap: str, arguments: Sequence[str | Path]
    ) -> None:
        self.name = name
        self.checkpoint = directory / f"{name}-checkpoint"
        self.output = directory / f"{name}.out"
        self._state_dir = directory / "state"
        self._arguments = [
            *("--bootstrap", bootstrap, "--state-dir", self._state_dir),
            *("--checkpoint", self.checkpoint, "--conf", "spark.driver.memory=1g"),
            *("--conf", _QUICK),
            *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._left_behind = list[psutil.Process]()

    def close(self) -> None:
        """Leave nothing running."""
        if self.is_running:
            self.kill(is_java_first=False)

    @property
    def last_batch(self) -> int:
        """The number of the last batch that is done; -1 before the first."""
        commits = self.checkpoint / "commits"
        numbers = [int(path.name) for path in commits.glob("*") if path.name.isdecimal()]
        return max(numbers, default=-1)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *more: str) -> None:
        command = [sys.executable, "-m", "headrace", "pipeline", "run", self.name]
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, *map(str, self._arguments), *more],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": "src"},
            )

    def advance(self, batches: int) -> None:
        """Wait until so many more batches are done."""
        goal = self.last_batch + batches
        wait_until(
            lambda: self.last_batch >= goal or not self.is_running,
            f"{self.name} did {batches} batches; it said:\n{self.told()}",
            _PATIENCE_SECONDS,
        )
        assert self.is_running, self.told()

    def kill(self, *, is_java_first: bool) -> None:
        """kill -9 of the Python driver, or of its JVM, which the driver then has to notice."""
        assert self._process is not None
        self._left_behind = psutil.Process(self._process.pid).children(recursive=True)
        if is_java_first:
            # Killed before it has one, the driver would go on, and nobody would ever end it.
            wait_until(self._kill_java, f"{self.name} has a Java to kill", _PATIENCE_SECONDS)
        else:
            self._process.kill()
        self._process.wait(_PATIENCE_SECONDS)
        # Python workers and the JVM end by themselves; the next life may meet them still alive.

    @property
    def is_gone(self) -> bool:
        """Whether the JVM and the workers of the life before have ended too."""
        return not any(process.is_running() for process in self._left_behind)

    def _kill_java(self) -> bool:
        """Whether there was one: Spark's, not the one that says its version or launches it."""
        assert self._process is not None
        is_killed = False
        for victim in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # workers come and go
                words = victim.cmdline()
                if _SPARK in words and _LAUNCHER not in words and victim.name() == "java":
                    victim.kill()
                    is_killed = True
        return is_killed

    def finish(self) -> None:
        """Run once more over what is there, to the end."""
        self.start("--trigger", "available-now", "--max-rows", "100000")
        self.join()

    def join(self) -> None:
        """Wait until it ends by itself, and well."""
        assert self._process is not None
        assert self._process.wait(_PATIENCE_SECONDS) == 0, self.told()

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(_PATIENCE_SECONDS)

    def told(self) -> str:
        """The end of what it printed."""
        return self.output.read_text("utf-8", "replace")[-3000:]
