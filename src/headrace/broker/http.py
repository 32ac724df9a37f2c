"""A tiny HTTP/1.1 server for `/healthz`, `/readyz` and `/metrics`.

GET and HEAD, one request a connection, a bounded head and a deadline: what a probe and
Prometheus need and nothing a stranger could lean on.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from headrace.broker.turns import in_slices
from headrace.metrics import CONTENT_TYPE, Metrics

_MAX_HEAD_BYTES = 8192  # what nginx and Apache allow a request line and its headers by default
_REQUEST_SECONDS = 5.0
_MAX_CONNECTIONS = 64
_PROBE_SECONDS = 1.0  # how long the answer of one write probe is believed
_PROBE_BYTES = 4096  # one block: an empty file can be made on a disk that is full
_PLAIN = "text/plain; charset=utf-8"
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}

Check = Callable[[], tuple[bool, str]]


class HttpServer:
    """Serves health and metrics. Event-loop thread only.

    `is_healthy` and `is_ready` answer (yes or no, why) and must not block.
    """

    def __init__(self, metrics: Metrics, is_healthy: Check, is_ready: Check) -> None:
        self._metrics = metrics
        self._is_healthy = is_healthy
        self._is_ready = is_ready
        self._server: asyncio.Server | None = None
        self._open_connections = 0
        self.host = ""
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Bind; raises OSError when the address is taken or not ours."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=_MAX_HEAD_BYTES)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Stop listening; a request under way ends by its deadline."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open_connections >= _MAX_CONNECTIONS:
            writer.close()
            return
        self._open_connections += 1
        try:
            async with asyncio.timeout(2 * _REQUEST_SECONDS):
                writer.write(await self._answer(reader))
                await writer.drain()
        except (ConnectionError, TimeoutError):
            pass  # the prober went away or never read
        finally:
            self._open_connections -= 1
            with contextlib.suppress(RuntimeError):  # the loop is closing
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _response(431, "the request's headers are too large\n")
        except asyncio.IncompleteReadError:
            return b""
        except TimeoutError:
            return _response(408, "no whole request came in time\n")
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(400, "not an HTTP/1.1 request\n")
        method, target = words[0], words[1].split(b"?", 1)[0]
        if target not in (b"/healthz", b"/readyz", b"/metrics"):
            return _response(404, "try /healthz, /readyz or /metrics\n", method)
        if method not in (b"GET", b"HEAD"):
            return _response(405, "only GET and HEAD\n", method)
        if target == b"/metrics":
            if "psutil" not in sys.modules:
                # It tells of this process, and takes 10 ms to import: not those of the loop.
                await asyncio.to_thread(import_module, "psutil")
            lines = [line async for line in in_slices(self._metrics.lines())]
            return _response(200, "\n".join(lines), method, CONTENT_TYPE)
        check = self._is_healthy if target == b"/healthz" else self._is_ready
        is_good, reason = check()
        return _response(200 if is_good else 503, reason + "\n", method)


class WriteProbe:
    """Tells whether a directory can be written, by writing to it; at most once a second."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / ".write-probe"
        self._answer: tuple[bool, str] = (True, "ok")
        self._checked_at = -_PROBE_SECONDS

    def __call__(self) -> tuple[bool, str]:
        """(True, "ok") or (False, why not)."""
        now = time.monotonic()
        if now - self._checked_at >= _PROBE_SECONDS:
            self._answer = self._probe()
            self._checked_at = now
        return self._answer

    def _probe(self) -> tuple[bool, str]:
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, bytes(_PROBE_BYTES), 0)
            finally:
                os.close(fd)
                os.unlink(self._path)  # noqa: PTH108
        except OSError as error:
            return False, f"data directory {self._path.parent}: {error.strerror}"
        return True, "ok"


def _response(status: int, text: str, method: bytes = b"GET", content_type: str = _PLAIN) -> bytes:
    body = text.encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS[status]}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if status == 405:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join([*lines, "", ""]).encode()
    return head if method == b"HEAD" else head + body
