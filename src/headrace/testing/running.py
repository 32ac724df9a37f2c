"""A broker in a thread of this process."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headrace.embedded import STOP_SECONDS, Broker
from headrace.settings.keywords import setting_names
from headrace.testing.faults import Faults
from headrace.testing.janitor import temporary_directory
from headrace.testing.requests import SeenRequests

if TYPE_CHECKING:
    from headrace.broker.connection import ClientConnection
    from headrace.broker.service import Service

_Result = TypeVar("_Result")
# Where Linux keeps files in memory.
_MEMORY_DIR = Path("/dev/shm")


class RunningBroker(Broker):
    """The embedded broker, with what a test wants to do to it."""

    def __init__(
        self,
        data_dir: Path,
        settings: dict[str, object],
        *,
        port: int = 0,
        is_watched: bool = False,
    ) -> None:
        super().__init__(data_dir, port=port)
        self._settings |= setting_names(settings)
        self._watch = (Faults(), SeenRequests()) if is_watched else None

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

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(STOP_SECONDS)

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

    def restart(self) -> None:
        """Stop, and start again on the same port and data."""
        self._settings["listeners"] = f"PLAINTEXT://{self.host}:{self.port}"
        self.stop()
        self.start()

    def _make_connection(self, service: "Service") -> "ClientConnection":
        from headrace.testing.watched_connection import WatchedConnection

        if self._watch is None:
            return super()._make_connection(service)
        return WatchedConnection(service, *self._watch)


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
        broker = RunningBroker(data_dir, settings, port=port, is_watched=watched)
        broker.start()
        stack.callback(broker.stop)
        yield broker


def _memory_dir() -> Path | None:
    return _MEMORY_DIR if os.access(_MEMORY_DIR, os.W_OK) else None
