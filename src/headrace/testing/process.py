"""A broker as a process of its own: one that can be killed."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.settings.keywords import setting_names
from headrace.testing import janitor
from headrace.testing.janitor import temporary_directory

_STOP_SECONDS = 120.0
_READY_SECONDS = 120.0


class BrokerNotReadyError(HeadraceError):
    """A broker process ended, or took too long, before its ready line."""


class BrokerProcess:
    """A `headrace serve` in a process of its own. What it prints goes to `stderr_path`."""

    def __init__(self, data_dir: Path, arguments: list[str], stderr_path: Path) -> None:
        self.data_dir = data_dir
        self.stderr_path = stderr_path
        self.host, self.port, self.http = "", 0, ""
        self.ready_line = ""
        self.started_at = time.monotonic()
        self.ready_seconds = 0.0
        command = [sys.executable, "-m", "headrace", "serve", "--data-dir", str(data_dir)]
        with stderr_path.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*command, *arguments],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environment(),
                # Ctrl-C reaches only us: whoever started it stops it, after its clients.
                start_new_session=True,
            )
        self._entrusted = janitor.entrust("process", self.process.pid)

    @property
    def bootstrap(self) -> str:
        """`host:port`, for `bootstrap.servers`; empty before the ready line."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def stderr_text(self) -> str:
        """All it has logged so far."""
        return self.stderr_path.read_text(errors="replace")

    def wait_ready(self, timeout_seconds: float = _READY_SECONDS) -> None:
        """Return at the ready line; raise BrokerNotReadyError with the log when none comes."""
        stdout = self.process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            is_readable = bool(selector.select(timeout_seconds))
        line = stdout.readline().decode() if is_readable else ""
        self.ready_seconds = time.monotonic() - self.started_at
        if not line.startswith("headrace ready on "):
            self.kill()
            raise BrokerNotReadyError(f"no ready line; it logged:\n{self.stderr_text()}")
        self.ready_line = line.strip()
        address = line.split()[3]
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.http = line.rstrip().removesuffix(")").rpartition("http ")[2]

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def terminate(self, timeout_seconds: float = _STOP_SECONDS) -> int:
        """SIGTERM, and return the exit code when it has drained and stopped."""
        return self._end(signal.SIGTERM, timeout_seconds)

    def _end(self, number: signal.Signals, timeout_seconds: float = _STOP_SECONDS) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout_seconds)
        janitor.take_back(self._entrusted)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextlib.contextmanager
def broker_process(
    data_dir: Path, *, port: int = 0, http_port: int = -1, wait: bool = True, **settings: object
) -> Iterator[BrokerProcess]:
    """Run `headrace serve` on `data_dir`; at the end it is killed unless it has ended before."""
    arguments = ["--port", str(port), "--http-port", str(http_port)]
    for name, value in setting_names(settings).items():
        arguments += ["--set", f"{name}={value}"]
    with temporary_directory("headrace-log-") as log_dir:
        broker = BrokerProcess(data_dir, arguments, log_dir / "stderr.log")
        try:
            if wait:
                broker.wait_ready()
            yield broker
        finally:
            broker.kill()


def _environment() -> dict[str, str]:
    """Ours, so that the child finds this same headrace, but none of the settings in it."""
    package_root = str(Path(__file__).parents[2])
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith("HEADRACE_")
    }
    path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([package_root, path] if path else [package_root])
    return environment
