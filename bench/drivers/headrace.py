"""headrace as a user runs it: `headrace serve` in its own process."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.baseline import environment_of
from bench.driver import MeasuredBroker
from bench.errors import BenchError
from headrace.client.cluster_questions import is_serving
from headrace.java.jars import cache_directory
from headrace.kafka import process
from headrace.patience import Patience

_HOST = "127.0.0.1"
_READY_TIMEOUT_S = 30
_STOP_GRACE_S = 30
_POLL_S = 0.002


class HeadraceDriver:
    """The embedded broker. acks=all waits for the disk by default, not doing so is an option."""

    has_jit = False

    def __init__(
        self,
        name: str = "headrace",
        source: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`source` is where another commit was built, to run instead of this one."""
        self.name = name
        self._source = source
        self._settings = dict(settings or {})

    def prepare(self, directory: Path) -> None:
        # The first start compiles Python to byte code, as an installation would have done.
        with self.running(directory, is_durable=True):
            pass

    @contextmanager
    def running(self, directory: Path, *, is_durable: bool) -> Iterator[MeasuredBroker]:
        directory.mkdir(parents=True, exist_ok=True)
        (port,) = process.free_ports(1)
        data_directory, log_file = directory / "data", directory / "headrace.log"
        command: list[str | Path] = [sys.executable, "-m", "headrace", "serve"]
        command += ["--host", _HOST, "--port", str(port), "--data-dir", data_directory]
        command += ["--http-port", "0", "--log-level", "warning"]
        command += ["--set", f"headrace.acks.all.sync={str(is_durable).lower()}"]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        started = time.monotonic()
        running = process.start(command, output=log_file, env=_environment(self._source))
        try:
            _await_ready(running, port, log_file)
            yield MeasuredBroker(
                name=self.name,
                port=port,
                pid=running.pid,
                ready_seconds=time.monotonic() - started,
                data_directory=data_directory,
            )
        finally:
            process.stop(running, _STOP_GRACE_S)


def _environment(source: Path | None) -> dict[str, str]:
    """Return ours, with byte code kept as in an installation but out of the source tree."""
    if source is None:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache_directory() / "pycache")}
    else:
        environment = environment_of(source)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _await_ready(running: subprocess.Popen[bytes], port: int, log_file: Path) -> None:
    patience = Patience(_READY_TIMEOUT_S, first_pause_s=_POLL_S, longest_pause_s=_POLL_S)
    is_over = patience.until(lambda: is_serving((_HOST, port)) or running.poll() is not None)
    code = running.poll()
    if code is not None or not is_over:
        what = "was not ready in time" if code is None else f"exited with code {code}"
        raise BenchError(f"headrace {what}; its log ends:\n{process.tail(log_file)}")
