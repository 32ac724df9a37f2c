"""The embedded broker inside this process: a thread with an event loop of its own."""

import asyncio
import contextlib
import shutil
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from headrace.client.bus import Bus
from headrace.settings.keywords import setting_names

if TYPE_CHECKING:
    from headrace.broker.connection import ClientConnection
    from headrace.broker.server import Server
    from headrace.broker.service import Service

STOP_SECONDS = 120.0


class Broker:
    """A broker in this process: no daemon, and no port beyond this machine unless asked for.

        with Broker(data_dir="data") as bus, Producer(bus) as producer:
            producer.send("orders", b"one tonne of grain")

    Without a directory its data are temporary. Settings are Kafka's, with underscores for dots:
    `Broker("data", log_retention_hours=24)`. `async with` starts and stops it without holding up
    the event loop.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        **settings: object,
    ) -> None:
        """`port` 0 takes a free one; `bus` tells which. ConfigError for a setting it has not."""
        self._is_temporary = data_dir is None
        self.data_dir = Path(data_dir or ".")
        self.server: Server
        self.loop: asyncio.AbstractEventLoop
        self._settings = {"listeners": f"PLAINTEXT://{host}:{port}", **setting_names(settings)}
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._is_to_stop = False
        self._stop_asked: asyncio.Event
        self._thread = threading.Thread()
        self._starting = threading.Lock()

    @property
    def host(self) -> str:
        """Where it listens; RuntimeError before it was started, as `port` and `bus`."""
        return self._listening.host

    @property
    def port(self) -> int:
        """The port it got."""
        return self._listening.port

    @property
    def bootstrap(self) -> str:
        """`host:port`, for `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def bus(self) -> Bus:
        """It as clients know it."""
        return Bus(self.bootstrap)

    def start(self) -> None:
        """Return when clients may connect; raise what starting it raised. Ctrl-C undoes it."""
        with self._starting:
            if self._thread.is_alive():
                raise RuntimeError(f"the broker on {self.data_dir} is already started")
            self._started.clear()
            self._is_to_stop = False
            self._thread = threading.Thread(target=self._run, name="headrace-broker", daemon=True)
            try:
                self._thread.start()
                self._started.wait()
            except BaseException:
                self._ask_to_stop()
                with contextlib.suppress(RuntimeError):  # it has not begun
                    self._thread.join(STOP_SECONDS)
                self._failure = None
                raise
            if self._failure is not None:
                self._thread.join()
                raise self._take_failure()

    def stop(self) -> None:
        """Drain and close cleanly; does nothing the second time."""
        if self._thread.is_alive():
            self._ask_to_stop()
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                raise TimeoutError(f"the broker did not stop within {STOP_SECONDS:.0f} s")
        if self._failure is not None:
            raise self._take_failure()

    def __enter__(self) -> Bus:
        self.start()
        return self.bus

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Bus:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Nobody leaves a block that was not entered: what the thread begins is undone here.
            await asyncio.wait([starting])
            with contextlib.suppress(Exception):
                starting.result()
                await asyncio.to_thread(self.stop)
            raise
        return self.bus

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    @property
    def _listening(self) -> "Server":
        if not hasattr(self, "server"):
            raise RuntimeError("the broker was not started yet")
        return self.server

    def _ask_to_stop(self) -> None:
        """Also one that is just starting, and has no event loop yet."""
        self._is_to_stop = True
        with contextlib.suppress(RuntimeError, AttributeError):  # the loop has ended, or not begun
            self.loop.call_soon_threadsafe(self._stop_asked.set)

    def _take_failure(self) -> BaseException:
        failure, self._failure = self._failure, None
        assert failure is not None
        return failure

    def _run(self) -> None:
        import uvloop

        # Here, where no Ctrl-C comes between a directory and its removal.
        try:
            with contextlib.ExitStack() as stack:
                if self._is_temporary:
                    self.data_dir = Path(tempfile.mkdtemp(prefix="headrace-"))
                    stack.callback(shutil.rmtree, self.data_dir, ignore_errors=True)
                runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
                stack.enter_context(runner).run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        from headrace.broker.server import Server
        from headrace.settings.broker_settings import BrokerSettings

        self._stop_asked = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.server = Server(
            BrokerSettings.load(overrides=self._settings),
            self.data_dir,
            make_connection=self._make_connection,
        )
        await self.server.start()
        self._started.set()
        if self._is_to_stop:
            self._stop_asked.set()
        await self._stop_asked.wait()
        await self.server.stop()

    def _make_connection(self, service: "Service") -> "ClientConnection":
        from headrace.broker.connection import ClientConnection

        return ClientConnection(service)
