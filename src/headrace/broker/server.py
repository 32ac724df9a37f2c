"""The broker's life: open the data directory, listen, keep house, drain, close."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

from headrace.broker.catalog import Catalog
from headrace.broker.connection import ClientConnection
from headrace.broker.descriptors import SocketQuota
from headrace.broker.dispatch import API_NAMES
from headrace.broker.gauges import register_gauges
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.listeners import Listener, advertised_listener, client_listener
from headrace.broker.pacing import skip_pacing
from headrace.broker.service import Service
from headrace.broker.state import BrokerState
from headrace.broker.topics import Topics
from headrace.config import LogConfig
from headrace.errors import ConfigError
from headrace.log.directory import LogDirectory, OpenReport
from headrace.metrics import Metrics
from headrace.settings.broker_settings import BrokerSettings

_log = logging.getLogger(__name__)

# How often a stopping broker looks whether everything is answered.
_DRAIN_POLL_SECONDS = 0.01


class Server:
    """One broker on one data directory. Event-loop thread only."""

    open_report: OpenReport

    def __init__(
        self,
        settings: BrokerSettings,
        data_dir: Path,
        *,
        on_progress: Callable[[int, int], None] | None = None,
        make_connection: Callable[[Service], ClientConnection] = ClientConnection,
    ) -> None:
        self._make_connection = make_connection
        self.settings = settings
        self.data_dir = data_dir
        self._on_progress = on_progress
        self.metrics = Metrics(API_NAMES)
        self.host = ""
        self.port = 0
        self.is_ready = False
        self._logs: LogDirectory | None = None
        self._catalog: Catalog | None = None
        self._topic_configs: dict[str, dict[str, str]] = {}
        self._service: Service | None = None
        self._housekeeping: Housekeeping | None = None
        self._listening: asyncio.Server | None = None

    @property
    def service(self) -> Service:
        """What connections share; there from `start` on."""
        if self._service is None:
            raise RuntimeError("the server was not started")
        return self._service

    @property
    def advertised(self) -> str:
        """The address clients are told, as host:port."""
        broker = self.service.broker
        return f"{broker.advertised_host}:{broker.advertised_port}"

    @property
    def is_healthy(self) -> tuple[bool, str]:
        """Whether messages can be taken in, and why not."""
        if self._service is None or self._service.is_draining:
            return False, "the broker is not running"
        failed = self._service.sync.failed
        if failed:
            return False, str(next(iter(failed.values())))
        if not os.access(self.data_dir, os.W_OK):
            return False, f"data directory {self.data_dir} cannot be written"
        return True, "ok"

    async def start(self) -> None:
        """Open the data directory and serve."""
        listener = client_listener(self.settings)
        bound = _bind(listener, self.settings.int("socket.listen.backlog.size"))
        try:
            self._open()
        except BaseException:
            bound.close()
            self._close_storage()
            raise
        loop = asyncio.get_running_loop()
        broker = self.service.broker
        self.host, self.port = listener.host, bound.getsockname()[1]
        listener = listener._replace(port=self.port)
        advertised = advertised_listener(self.settings, listener, socket.gethostname())
        broker.advertised_host, broker.advertised_port = advertised.host, advertised.port
        self.settings.note_effective(
            {
                "listeners": str(listener),
                "advertised.listeners": str(advertised),
                "log.dirs": str(self.data_dir),
            }
        )
        self._listening = await loop.create_server(
            lambda: self._make_connection(self.service),
            sock=bound,
            backlog=self.settings.int("socket.listen.backlog.size"),
        )
        self._housekeeping = Housekeeping(self.service, self._storage())
        self._housekeeping.start()
        self.is_ready = True

    def _open(self) -> None:
        settings = self.settings
        node_id = settings.int("node.id")
        self._logs = LogDirectory(
            self.data_dir,
            node_id=node_id,
            expire_producers_ms=settings.int("producer.id.expiration.ms"),
        )
        now_ms = BrokerState.now_ms()
        self.open_report = self._logs.open(
            now_ms, config_for=self._config_for, on_progress=self._on_progress
        )
        for repair in self.open_report.repairs:
            _log.warning("repaired: %s", repair)
        if self._catalog is None:
            self._catalog = Catalog(self.data_dir)
        settings.set_dynamic(self._catalog.broker_configs())
        topics = Topics(self._catalog, self._logs, settings, BrokerState.now_ms)
        broker = BrokerState(
            node_id=node_id, cluster_id=self._logs.cluster_id, settings=settings, topics=topics
        )
        register_gauges(self.metrics, topics, self._logs)
        self._service = service = Service(
            asyncio.get_running_loop(), broker, self.metrics, SocketQuota(self._logs.files.limit)
        )
        topics.on_delete.append(lambda topic: service.waiting.wake_all())

    def _config_for(self, topic: str) -> LogConfig:
        """A topic's config while the directory, by now locked, is being recovered."""
        if self._catalog is None:
            self._catalog = Catalog(self.data_dir)
            self._topic_configs = {one.name: one.configs for one in self._catalog.topics()}
        return self.settings.log_config(self._topic_configs.get(topic, {}))

    def _storage(self) -> LogDirectory:
        if self._logs is None:
            raise RuntimeError("the server was not started")
        return self._logs

    async def stop(self, drain_seconds: float = 5.0) -> None:
        """Answer what was asked, then close everything cleanly."""
        self.is_ready = False
        if self._listening is not None:
            self._listening.close()
        if self._housekeeping is not None:
            await self._housekeeping.stop()
        service = self._service
        if service is not None:
            service.drain()
            loop = asyncio.get_running_loop()
            deadline = loop.time() + drain_seconds
            # Quiet depends on sockets, syncs and tasks; a few looks beat an event for each.
            while not service.is_quiet and loop.time() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(_DRAIN_POLL_SECONDS)
            service.committer.flush()
            for connection in tuple(service.connections):
                connection.finish()
            await asyncio.sleep(0)
            await service.broker.topics.drain()
            service.broker.topics.changes.stop()
            await service.stop()
            service.broker.clock.stop()
        self._close_storage()

    def _close_storage(self) -> None:
        logs, self._logs = self._logs, None
        catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()
        if logs is not None:
            logs.close(BrokerState.now_ms())


def _bind(listener: Listener, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listener.host, listener.port))
        skip_pacing(bound, bound.getsockname())
        bound.listen(backlog)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise _bind_error(listener, error) from error
    return bound


def _bind_error(listener: Listener, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        wanted = "the port is in use by another program; stop it or choose another with --port"
    elif error.errno == errno.EACCES:
        wanted = "ports below 1024 need privileges; choose another with --port"
    elif error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        wanted = "this machine has no such address; choose another with --host"
    else:
        wanted = error.strerror or str(error)
    return ConfigError("listeners", listener, wanted)
