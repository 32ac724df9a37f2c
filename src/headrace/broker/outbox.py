"""What a connection has still to send: bytes and stretches of files, in order.

Small things go through the transport. A long stretch of a file goes from the
page cache to the socket by sendfile(2), without passing through this process.
It needs the transport's own buffer to be empty, or the order would be lost,
and a second descriptor of the socket to wait on, since the transport guards
its own. docs/adr/0007 has the figures.

Bytes that are not in the page cache would make the loop wait for the disk. So the
loop asks before it sends, and where it must, a thread reads the next stretch first;
the order stays, for the outbox counts as blocked meanwhile.
"""

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from headrace.broker.answers import Piece
from headrace.broker.descriptors import SocketQuota
from headrace.broker.pacing import skip_pacing
from headrace.broker.read_threads import ReadThreads
from headrace.log.access import RESIDENT
from headrace.log.files import OpenFile
from headrace.log.partition_log import FileSlice
from headrace.log.verifying import Warming
from headrace.metrics import Counter

_log = logging.getLogger(__name__)

# Below this, one copy through the transport is cheaper than two more system calls.
SENDFILE_FROM_BYTES = 32 * 1024
# What a copy takes of a file at a time: the memory that a client which does not read can
# hold, beside the transport's own high-water mark.
COPY_BYTES = 1024 * 1024
HIGH_WATER_BYTES = 512 * 1024
# What is asked for, read from the disk if need be, and sent at a time.
STRETCH_BYTES = 1024 * 1024
# Between two looks into a stretch, a microsecond each: the kernel's usual read-ahead; much less for
# one who has just met bytes that were not there, for those come in patches; hardly any for one who
# has not met such for WARM_STRETCHES.
PROBE_EVERY_BYTES = 128 * 1024
COLD_PROBE_EVERY_BYTES = 16 * 1024
WARM_STRETCHES = 16
# What one connection sends of files in one turn of the loop (under half a millisecond): a
# reader as fast as the loop would else keep it to itself for all of a large answer.
TURN_BYTES = 2 * 1024 * 1024
# Stretches too short for sendfile that one connection reads in one turn of the loop, at a few
# microseconds each: an answer may have thousands.
TURN_READS = 128


class Outbox:
    """Owned by one connection; event-loop thread only."""

    __slots__ = (
        "_bytes_out",
        "_is_full",
        "_is_resting",
        "_is_waiting",
        "_is_warming",
        "_loop",
        "_on_broken",
        "_on_room",
        "_pieces",
        "_probe_every",
        "_reads",
        "_socket",
        "_sockets",
        "_transport",
        "_warm_end",
        "_warm_file",
        "_warm_stretches",
        "is_blocked",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bytes_out: Counter,
        on_room: Callable[[], None],
        on_broken: Callable[[], None],
        reads: ReadThreads,
        sockets: SocketQuota | None = None,
    ) -> None:
        self._loop = loop
        self._sockets = sockets or SocketQuota(log_files=0)
        self._reads = reads
        self._bytes_out = bytes_out
        self._on_room = on_room
        self._on_broken = on_broken
        self._pieces: deque[Piece] = deque()
        self._transport: Any = None
        self._socket: socket.socket | None = None
        self.is_blocked = False  # nothing can be sent now: one of the next four
        self._is_full = False  # the transport's buffer is over its high-water mark
        self._is_waiting = False  # the socket is full
        self._is_warming = False  # a thread reads what comes next
        self._is_resting = False  # others have the loop
        # What a thread has read: sent without asking again, so that there is always progress.
        self._warm_file: OpenFile | None = None
        self._warm_end = 0
        self._probe_every = PROBE_EVERY_BYTES
        self._warm_stretches = 0  # in a row

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
        self._warm_file = None
        if self._socket is not None:
            if self._is_waiting:
                self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._socket = None
            self._sockets.give_back()

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
        self._go_on()

    def _go_on(self) -> None:
        self.is_blocked = self._is_full or self._is_waiting or self._is_warming or self._is_resting
        if self.is_blocked:
            return
        self._pump()
        if not self.is_blocked:
            self._on_room()

    def _pump(self) -> None:
        pieces = self._pieces
        sent = reads = 0
        while pieces and self._transport is not None and not self.is_blocked:
            piece = pieces.popleft()
            content: bytes | bytearray | None
            if isinstance(piece, FileSlice):
                if self._may_sendfile(piece):
                    self._sendfile(b"", piece)
                    continue
                reads += 1
                if reads > TURN_READS:
                    pieces.appendleft(piece)
                    self._rest()
                    break
                content = self._read(piece)
                if content is None:
                    break  # a thread reads it first
            elif pieces:
                follower = pieces[0]
                if isinstance(follower, FileSlice):
                    if self._may_sendfile(follower):
                        del pieces[0]
                        self._sendfile(piece, follower)
                        continue
                    content = piece
                else:
                    content = self._join(piece)
            else:
                content = piece
            if self._transport is not None:
                sent += len(content)
                self._transport.write(content)
        self._bytes_out.value += sent

    def _rest(self) -> None:
        """Let others have the loop, then go on."""
        self._is_resting = self.is_blocked = True
        self._loop.call_soon(self._on_rested)

    def _on_rested(self) -> None:
        self._is_resting = False
        self._go_on()

    def _join(self, piece: bytes) -> bytes:
        run = [piece]
        pieces = self._pieces
        while pieces and not isinstance(pieces[0], FileSlice):
            run.append(pieces.popleft())  # type: ignore[arg-type]
        if pieces:
            # The last one goes with the file that follows.
            pieces.appendleft(run.pop())
        return b"".join(run)

    def _read(self, piece: FileSlice) -> bytes | bytearray | None:
        """Read the next part of a file; the rest goes back to the front of the queue.

        None when it is not in memory: then all of it goes back, and a thread reads it.
        """
        file, position, length = piece
        size = min(length, COPY_BYTES)
        content: bytes | bytearray | None
        try:
            if self._was_read(file, position + size):
                content = os.pread(file.fd, size, position)
            else:
                content = RESIDENT.try_read(file, size, position)
        except OSError as error:
            _log.error("cannot read %s: %s", file.path, error)
            content = b""
        if content is None:
            self._pieces.appendleft(piece)
            self._warm(file, position, size)
            return None
        if len(content) < size:
            # The answer's size is already promised: an end is better than wrong bytes.
            self._on_broken()
        elif length > size:
            self._pieces.appendleft(FileSlice(file, position + size, length - size))
        return content

    def _was_read(self, file: OpenFile, end: int) -> bool:
        return file is self._warm_file and end <= self._warm_end

    def _is_resident(self, file: OpenFile, position: int, length: int) -> bool:
        """Whether a stretch is in memory; asked ever more seldom while it always is."""
        if self._was_read(file, position + length):
            return True
        if not RESIDENT.has(file, position, length, self._probe_every):
            self._probe_every = COLD_PROBE_EVERY_BYTES
            self._warm_stretches = 0
            return False
        self._warm_stretches += 1
        if self._warm_stretches == WARM_STRETCHES:
            self._probe_every = STRETCH_BYTES
        return True

    def _warm(self, file: OpenFile, position: int, length: int) -> None:
        """Have a thread read the next stretch, then go on."""
        self._is_warming = self.is_blocked = True
        end = position + length

        def on_warm(result: None, error: Exception | None) -> None:
            self._is_warming = False
            if self._transport is None:
                return  # the client is gone
            if error is not None:
                _log.error("cannot read %s: %s", file.path, error)
                self._on_broken()
                return
            self._warm_file, self._warm_end = file, end
            self._go_on()

        self._reads.submit(Warming(file, position, length).run, on_warm)

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
        if not self._sockets.take():
            return False  # descriptors are short: bytes are copied through the first one
        try:
            self._socket = socket.socket(fileno=os.dup(under.fileno()))
        except OSError:
            self._sockets.give_back()
            return False
        skip_pacing(self._socket, self._transport.get_extra_info("peername"))
        return True

    def _sendfile(self, head: bytes, piece: FileSlice) -> None:
        """Send `head` and then the file's bytes, as far as the socket takes them."""
        assert self._socket is not None
        file, position, left = piece
        sent = known = 0  # `known` bytes from `position` on are in memory
        is_cold = False
        try:
            known = min(left, STRETCH_BYTES)
            is_cold = not self._is_resident(file, position, known)
            if head and not is_cold:
                sent = self._socket.send(head, socket.MSG_MORE)
                head = head[sent:]
            while left and not head and not is_cold and sent < TURN_BYTES:
                if not known:
                    known = min(left, STRETCH_BYTES)
                    is_cold = not self._is_resident(file, position, known)
                    continue
                count = os.sendfile(self._socket.fileno(), file.fd, position, known)
                if not count:
                    _log.error("%s ended %d bytes early", file.path, left)
                    self._on_broken()
                    return
                position += count
                known -= count
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
        if is_cold:
            self._warm(file, position, known)
        elif head or left:
            self._is_waiting = self.is_blocked = True
            self._loop.add_writer(self._socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        self._is_waiting = False
        if self._socket is not None:
            self._loop.remove_writer(self._socket.fileno())
        self._go_on()
