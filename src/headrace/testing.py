"""Brokers for tests: one inside the test process, or one as a process that can be killed.

    with running_broker() as broker:
        Producer({"bootstrap.servers": broker.bootstrap})

Settings are Kafka's, with underscores for dots: `running_broker(log_segment_bytes=1048576)`.
"""

import asyncio
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.broker.server import Server

_Result = TypeVar("_Result")
_STOP_SECONDS = 30.0
_READY_SECONDS = 30.0


class BrokerNotReadyError(HeadraceError):
    """A broker process ended, or took too long, before its ready line."""


class RunningBroker:
    """A broker in a thread of this process, with an event loop of its own."""

    def __init__(self, data_dir: Path, settings: dict[str, str]) -> None:
        self.data_dir = data_dir
        self.server: Server
        self.loop: asyncio.AbstractEventLoop
        self._settings = settings
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._stop_asked: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="headrace-broker", daemon=True)

    @property
    def host(self) -> str:
        """Where it listens."""
        return self.server.host

    @property
    def port(self) -> int:
        """The port it got."""
        return self.server.port

    @property
    def bootstrap(self) -> str:
        """`host:port`, for `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    def run(self, function: Callable[[], Awaitable[_Result]]) -> _Result:
        """Await `function()` in the broker's event loop, the only thread that may touch it."""

        async def call() -> _Result:
            return await function()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(_STOP_SECONDS)

    def start(self) -> None:
        """Return when clients may connect; raise what `Server.start` raised."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        """Drain and close cleanly; does nothing the second time."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                self.loop.call_soon_threadsafe(self._stop_asked.set)
            self._thread.join(_STOP_SECONDS)
            if self._thread.is_alive():
                raise TimeoutError(f"the broker did not stop within {_STOP_SECONDS:.0f} s")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        import uvloop

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        from headrace.broker.server import Server
        from headrace.settings.broker_settings import BrokerSettings

        self.loop = asyncio.get_running_loop()
        self._stop_asked = asyncio.Event()
        self.server = Server(BrokerSettings.load(overrides=self._settings), self.data_dir)
        await self.server.start()
        self._started.set()
        await self._stop_asked.wait()
        await self.server.stop()


@contextlib.contextmanager
def running_broker(
    data_dir: Path | None = None, *, port: int = 0, **settings: object
) -> Iterator[RunningBroker]:
    """Run a broker inside this process, on a temporary directory unless one is given."""
    with contextlib.ExitStack() as stack:
        if data_dir is None:
            temporary = tempfile.TemporaryDirectory(prefix="headrace-")
            data_dir = Path(stack.enter_context(temporary))
        named = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", **setting_names(settings)}
        broker = RunningBroker(data_dir, named)
        broker.start()
        stack.callback(broker.stop)
        yield broker


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
                [*command, *arguments], stdout=subprocess.PIPE, stderr=stderr, env=_environment()
            )

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
    with tempfile.TemporaryDirectory(prefix="headrace-log-") as log_dir:
        broker = BrokerProcess(data_dir, arguments, Path(log_dir) / "stderr.log")
        try:
            if wait:
                broker.wait_ready()
            yield broker
        finally:
            broker.kill()


def setting_names(settings: dict[str, object]) -> dict[str, str]:
    """Keyword arguments as Kafka's names and texts: underscores are dots, True is `true`."""
    return {
        name.replace("_", "."): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def _environment() -> dict[str, str]:
    """Ours, so that the child finds this same headrace, but none of the settings in it."""
    package_root = str(Path(__file__).parents[1])
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")
    }
    path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([package_root, path] if path else [package_root])
    return environment
