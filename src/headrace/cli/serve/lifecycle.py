"""The life of a `headrace serve` process: start, one ready line, wait for a signal, drain, stop."""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import uvloop

from headrace.broker.http import Check, HttpServer, WriteProbe
from headrace.broker.listeners import client_listener
from headrace.broker.logging_setup import set_up_logging
from headrace.broker.loop_lag import LoopLag
from headrace.broker.server import Server
from headrace.cli.endings import EXIT_FAILED
from headrace.cli.serve.options import ServeOptions
from headrace.errors import ConfigError
from headrace.log.files import raise_open_files_limit
from headrace.records.scan import IS_NATIVE
from headrace.settings.broker_settings import BrokerSettings

_log = logging.getLogger(__name__)
_HTTP_PORT = "headrace.http.port"
# Requests make few cycles and many short-lived objects: at the default of 700 the
# collector would run hundreds of times a second to find nothing.
_GC_THRESHOLDS = (50_000, 20, 20)
# A thread that has synced a file waits this long for a busy event loop to let it say so;
# at the default of 5 ms, every acks=all request behind it would wait too.
_SWITCH_SECONDS = 0.0005


class StopSignals:
    """The first SIGTERM or SIGINT asks to stop; the second ends the process at once.

    Plain handlers, not the loop's: they act while start-up repairs a log and the loop stands.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.asked = asyncio.Event()
        self._count = 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            os.write(2, b"headrace: second signal, stopping without draining\n")
            os._exit(EXIT_FAILED)
        self._loop.call_soon_threadsafe(self.asked.set)


class _RecoveryProgress:
    """Logs how far the repair after a crash has come, at most once a second."""

    def __init__(self) -> None:
        self._next_at = time.monotonic() + 1

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + 1
            _log.info("checking logs after an unclean stop", extra={"done": done, "of": total})


def serve(options: ServeOptions, settings: BrokerSettings, data_dir: Path) -> int:
    """Run the broker on uvloop until it is stopped; return the exit code."""
    set_up_logging(options.log_format, options.log_level)
    for warning in settings.warnings:
        _log.warning("%s", warning)
    before, now = raise_open_files_limit()
    if now != before:
        _log.info(
            "open files: limit raised from %d to %d, the most this user may have", before, now
        )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, data_dir))


async def _serve(settings: BrokerSettings, data_dir: Path) -> int:
    loop = asyncio.get_running_loop()
    signals = StopSignals(loop)
    server = Server(settings, data_dir, on_progress=_RecoveryProgress())
    is_ready = readiness(server, WriteProbe(data_dir))
    http = HttpServer(server.metrics, lambda: server.is_healthy, is_ready)
    lag = LoopLag(server.metrics.loop_lag_seconds, server.metrics.loop_lag_worst_seconds, loop)
    try:
        await _start_http(http, settings)
        await server.start()
        lag.start()
        _tell_ready(server, http, data_dir)
        _settle_interpreter()
        await signals.asked.wait()
        _log.info("stopping")
        lag.stop()
        await server.stop()
    finally:
        await http.stop()
    _log.info("stopped")
    return 0


def readiness(server: Server, probe: WriteProbe) -> Check:
    """Ready: started, not draining, healthy, and the data directory takes writes."""

    def is_ready() -> tuple[bool, str]:
        if not server.is_ready:
            return False, "not serving: starting or draining"
        is_good, reason = server.is_healthy
        return probe() if is_good else (False, reason)

    return is_ready


async def _start_http(http: HttpServer, settings: BrokerSettings) -> None:
    host, port = client_listener(settings).host, settings.int(_HTTP_PORT)
    if port < 0:
        return
    if port > 65535:  # uvloop would take what is left of it by 65536
        raise ConfigError(_HTTP_PORT, port, "a port is at most 65535")
    try:
        await http.start(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or settings.is_set(_HTTP_PORT):
            why = "is in use by another program" if error.errno == errno.EADDRINUSE else error
            raise ConfigError(
                _HTTP_PORT, port, f"port {port} on {host} {why}; choose another with --http-port"
            ) from error
        _log.warning("port %d is in use: no /metrics; choose a port with --http-port", port)


def _settle_interpreter() -> None:
    # What start-up made lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)


def _tell_ready(server: Server, http: HttpServer, data_dir: Path) -> None:
    if not IS_NATIVE:
        _log.warning("the C accelerator was not built: produce is slower; install a C compiler")
    http_address = f"{http.host}:{http.port}" if http.port else "off"
    address = f"{server.host or '0.0.0.0'}:{server.port}"
    with contextlib.suppress(BrokenPipeError):
        print(f"headrace ready on {address} (data {data_dir}, http {http_address})", flush=True)
