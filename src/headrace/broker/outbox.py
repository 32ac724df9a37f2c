"""What a connection has still to send: bytes and stretches of files, in order.

Small things go through the transport. A long stretch of a file goes from the
page cache to the socket by sendfile(2), without passing through this process.
It needs the transport's own buffer to be empty, or the order would be lost,
and a second descriptor of the socket to wait on, since the transport guards
its own. docs/adr/0007 has the figures.
"""

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from headrace.broker.answers import Piece
from headrace.broker.pacing import skip_pacing
from headrace.log.partition_log import FileSlice
from headrace.metrics import Counter

_log = logging.getLogger(__name__)

# Below this, one copy through the transport is cheaper than two more system calls.
SENDFILE_FROM_BYTES = 32 * 1024
# What a copy takes of a file at a time: the memory that a client which does not read can
# hold, beside the transport's own high-water mark.
COPY_BYTES = 1024 * 1024
HIGH_WATER_BYTES = 512 * 1024


class Outbox:
    """Owned by one connection; event-loop thread only."""

    __slots__ = ("_bytes_out", "_is_full", "_is_waiting", "_loop", "_on_broken", "_on_room",
                 "_pieces", "_socket", "_transport",
                 "is_blocked")  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bytes_out: Counter,
        on_room: Callable[[], None],
        on_broken: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._bytes_out = bytes_out
        self._on_room = on_room
        self._on_broken = on_broken
        self._pieces: deque[Piece] = deque()
        self._transport: Any = None
        self._socket: socket.socket | None = None
        self.is_blocked = False  # the client does not take what it is sent: one of the next two
        self._is_full = False  # the transport's buffer is over its high-water mark
        self._is_waiting = False  # the socket is full

    @property
    def is_empty(self) -> bool:
        """Everything was handed on."""
        return not self._pieces

    def open(self, transport: Any) -> None:
        """Start to send through `transport`."""
        self._transport = transport
        # Low water 0: after a copy the buffer is empty, so that files may go past it.
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES, low=0)

    def close(self) -> None:
        """Forget what was not sent."""
        self._pieces.clear()
        self._transport = None
        if self._socket is not None:
            if self._is_waiting:
                self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def send(self, pieces: Iterable[Piece]) -> None:
        """Send `pieces` behind everything before them."""
        self._pieces.extend(pieces)
        if not self.is_blocked:
            self._pump()

    def pause(self) -> None:
        """The transport has enough."""
        self._is_full = self.is_blocked = True

    def resume(self) -> None:
        """The transport's buffer is empty again."""
        self._is_full = False
        self.is_blocked = self._is_waiting
        self._pump()
        if not self.is_blocked:
            self._on_room()

    def _pump(self) -> None:
        pieces = self._pieces
        sent = 0
        while pieces and self._transport is not None and not self.is_blocked:
            piece = pieces.popleft()
            if isinstance(piece, FileSlice):
                if self._may_sendfile(piece):
                    self._sendfile(b"", piece)
                    continue
                piece = self._read(piece)
            elif pieces:
                follower = pieces[0]
                if isinstance(follower, FileSlice):
                    if self._may_sendfile(follower):
                        del pieces[0]
                        self._sendfile(piece, follower)
                        continue
                else:
                    piece = self._join(piece)
            if self._transport is not None:
                sent += len(piece)
                self._transport.write(piece)
        self._bytes_out.value += sent

    def _join(self, piece: bytes) -> bytes:
        run = [piece]
        pieces = self._pieces
        while pieces and not isinstance(pieces[0], FileSlice):
            run.append(pieces.popleft())  # type: ignore[arg-type]
        if pieces:
            # The last one goes with the file that follows.
            pieces.appendleft(run.pop())
        return b"".join(run)

    def _read(self, piece: FileSlice) -> bytes:
        """Read the next part of a file; the rest goes back to the front of the queue."""
        file, position, length = piece
        size = min(length, COPY_BYTES)
        try:
            content = os.pread(file.fd, size, position)
        except OSError as error:
            _log.error("cannot read %s: %s", file.path, error)
            content = b""
        if len(content) < size:
            # The answer's size is already promised: an end is better than wrong bytes.
            self._on_broken()
        elif length > size:
            self._pieces.appendleft(FileSlice(file, position + size, length - size))
        return content

    def _may_sendfile(self, piece: FileSlice) -> bool:
        return (
            piece.length >= SENDFILE_FROM_BYTES
            and self._transport.get_write_buffer_size() == 0
            and (self._socket is not None or self._open_socket())
        )

    def _open_socket(self) -> bool:
        under = self._transport.get_extra_info("socket")
        if under is None or self._transport.get_extra_info("ssl_object") is not None:
            return False
        self._socket = socket.socket(fileno=os.dup(under.fileno()))
        skip_pacing(self._socket, self._transport.get_extra_info("peername"))
        return True

    def _sendfile(self, head: bytes, piece: FileSlice) -> None:
        """Send `head` and then the file's bytes, as far as the socket takes them."""
        assert self._socket is not None
        file, position, left = piece
        sent = 0
        try:
            if head:
                sent = self._socket.send(head, socket.MSG_MORE)
                head = head[sent:]
            while left and not head:
                count = os.sendfile(self._socket.fileno(), file.fd, position, left)
                if not count:
                    _log.error("%s ended %d bytes early", file.path, left)
                    self._on_broken()
                    return
                position += count
                left -= count
                sent += count
        except BlockingIOError:
            pass
        except OSError:
            self._on_broken()  # the client is gone
            return
        self._bytes_out.value += sent
        if left:
            self._pieces.appendleft(FileSlice(file, position, left))
        if head:
            self._pieces.appendleft(head)
        if head or left:
            self._is_waiting = self.is_blocked = True
            self._loop.add_writer(self._socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        self._is_waiting = False
        self.is_blocked = self._is_full
        if self._socket is not None:
            self._loop.remove_writer(self._socket.fileno())
        self._pump()
        if not self.is_blocked:
            self._on_room()
