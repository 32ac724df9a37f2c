"""A broker in a thread of this process."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headrace.testing.faults import Faults
from headrace.testing.janitor import temporary_directory
from headrace.testing.requests import SeenRequests
from headrace.testing.setting_names import setting_names

if TYPE_CHECKING:
    from headrace.broker.connection import ClientConnection
    from headrace.broker.server import Server
    from headrace.broker.service import Service

_Result = TypeVar("_Result")
_STOP_SECONDS = 120.0
# Where Linux keeps files in memory.
_MEMORY_DIR = Path("/dev/shm")


class RunningBroker:
    """A broker in a thread of this process, with an event loop of its own."""

    def __init__(
        self, data_dir: Path, settings: dict[str, str], *, is_watched: bool = False
    ) -> None:
        self.data_dir = data_dir
        self.server: Server
        self.loop: asyncio.AbstractEventLoop
        self._settings = settings
        self._watch = (Faults(), SeenRequests()) if is_watched else None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._stop_asked: asyncio.Event
        self._thread = threading.Thread()

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

    @property
    def faults(self) -> Faults:
        """What it shall do wrong; only of a broker started with `watched=True`."""
        return self._watched()[0]

    @property
    def requests(self) -> SeenRequests:
        """What it was asked; only of a broker started with `watched=True`."""
        return self._watched()[1]

    def _watched(self) -> tuple[Faults, SeenRequests]:
        if self._watch is None:
            raise RuntimeError("faults and requests need running_broker(watched=True)")
        return self._watch

    def run(self, function: Callable[[], Awaitable[_Result]]) -> _Result:
        """Await `function()` in the broker's event loop, the only thread that may touch it."""

        async def call() -> _Result:
            return await function()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(_STOP_SECONDS)

    def advance(self, seconds: float) -> None:
        """Let this much time pass for groups: sessions, rebalances and committed offsets age.

        Clients do not notice; one that goes on heartbeating is late only once.
        """

        async def advance() -> None:
            self.server.service.broker.clock.advance(round(seconds * 1000))

        self.run(advance)

    def disconnect_all(self) -> None:
        """Close every connection; clients may come back at once."""

        async def disconnect() -> None:
            for connection in tuple(self.server.service.connections):
                connection.close()

        self.run(disconnect)

    def start(self) -> None:
        """Return when clients may connect; raise what `Server.start` raised."""
        self._started.clear()
        self._thread = threading.Thread(target=self._run, name="headrace-broker", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._take_failure()

    def stop(self) -> None:
        """Drain and close cleanly; does nothing the second time."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                self.loop.call_soon_threadsafe(self._stop_asked.set)
            self._thread.join(_STOP_SECONDS)
            if self._thread.is_alive():
                raise TimeoutError(f"the broker did not stop within {_STOP_SECONDS:.0f} s")
        if self._failure is not None:
            raise self._take_failure()

    def restart(self) -> None:
        """Stop, and start again on the same port and data."""
        self._settings["listeners"] = f"PLAINTEXT://{self.host}:{self.port}"
        self.stop()
        self.start()

    def _take_failure(self) -> BaseException:
        failure, self._failure = self._failure, None
        assert failure is not None
        return failure

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
        from headrace.broker.connection import ClientConnection
        from headrace.broker.server import Server
        from headrace.settings.broker_settings import BrokerSettings

        self.loop = asyncio.get_running_loop()
        self._stop_asked = asyncio.Event()
        self.server = Server(
            BrokerSettings.load(overrides=self._settings),
            self.data_dir,
            make_connection=self._make_watched if self._watch else ClientConnection,
        )
        await self.server.start()
        self._started.set()
        await self._stop_asked.wait()
        await self.server.stop()

    def _make_watched(self, service: "Service") -> "ClientConnection":
        from headrace.testing.watched_connection import WatchedConnection

        return WatchedConnection(service, *self._watched())


@contextlib.contextmanager
def running_broker(
    data_dir: Path | None = None,
    *,
    port: int = 0,
    watched: bool = False,
    in_memory: bool = False,
    **settings: object,
) -> Iterator[RunningBroker]:
    """Run a broker inside this process, on a temporary directory unless one is given.

    `watched` gives it `faults` and `requests`, at the price of speed; `in_memory` puts the
    temporary directory where files stay in memory, if the machine has such a place.
    """
    with contextlib.ExitStack() as stack:
        if data_dir is None:
            parent = _memory_dir() if in_memory else None
            data_dir = stack.enter_context(temporary_directory("headrace-", parent))
        named = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", **setting_names(settings)}
        broker = RunningBroker(data_dir, named, is_watched=watched)
        broker.start()
        stack.callback(broker.stop)
        yield broker


def _memory_dir() -> Path | None:
    return _MEMORY_DIR if os.access(_MEMORY_DIR, os.W_OK) else None
