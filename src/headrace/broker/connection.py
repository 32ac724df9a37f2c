"""One client connection: frames in, answers out in request order, bounded in both directions.

Reading stops while the client does not read its answers, while too many of
its requests are unanswered, or while the memory budget is used up; it goes on
by itself.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from headrace.broker.answers import Answer, Piece
from headrace.broker.outbox import Outbox
from headrace.broker.receive_buffer import ReceiveBuffer
from headrace.errors import WireError
from headrace.protocol.headers import read_request_header
from headrace.protocol.primitives import INT32
from headrace.protocol.produce_shape import ProduceShapes

if TYPE_CHECKING:
    from headrace.broker.service import Service

_log = logging.getLogger(__name__)

# The shortest request: its size, key, version, correlation id and a null client id.
MIN_FRAME_BYTES = 14
# A client that waits this long for memory to take its request in is let go.
MEMORY_WAIT_SECONDS = 30.0


class Connection(asyncio.BufferedProtocol):
    """Created by the server for each accepted socket. Event-loop thread only."""

    __slots__ = ("_answers", "_buffer", "_is_closing", "_is_held", "_is_paused", "_memory_timer",
                 "_outbox", "_service", "_transport", "has_staged_views", "last_active_ms", "peer",
                 "shapes")  # fmt: skip

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._buffer = ReceiveBuffer(service.budget)
        self._answers: deque[Answer] = deque()
        self._outbox = Outbox(
            service.loop,
            service.metrics.bytes_out,
            on_room=self._maybe_go_on,
            on_broken=self.close,
            reads=service.reads,
        )
        self._transport: Any = None
        self._is_paused = False
        self._is_held = False
        self._is_closing = False
        self._memory_timer: asyncio.TimerHandle | None = None
        self.has_staged_views = False
        self.shapes = ProduceShapes()
        self.last_active_ms = service.broker.now_ms()
        self.peer = ""

    # --- the transport calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._outbox.open(transport)
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if isinstance(peer, tuple) else ""
        reason = self._service.admit(self)
        if reason is not None:
            _log.warning("connection refused", extra={"peer": self.peer, "reason": reason})
            self._is_closing = True
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        if self.has_staged_views:
            self._service.committer.flush()
        if self._memory_timer is not None:
            self._memory_timer.cancel()
        self._outbox.close()
        answers, self._answers = self._answers, deque()
        for answer in answers:
            answer.cancel()
        self._buffer.release()
        self._service.dismiss(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self.has_staged_views:
            # Batches staged from this buffer must be written before it is read into again.
            self._service.committer.flush()
        return self._buffer.make_room()

    def buffer_updated(self, nbytes: int) -> None:
        self._buffer.end += nbytes
        self._service.metrics.bytes_in.value += nbytes
        self._take_requests()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self._outbox.resume()

    # --- requests

    def _take_requests(self) -> None:
        """Serve the whole requests in the buffer, then see to room for the next."""
        buffer = self._buffer
        service = self._service
        self.last_active_ms = now_ms = service.broker.now_ms()
        try:
            while not self._is_closing:
                start = buffer.start
                available = buffer.end - start
                if available < 4:
                    buffer.wanted = 0
                    break
                if (
                    self._is_held
                    or self._outbox.is_blocked
                    or len(self._answers) >= service.max_inflight
                ):
                    self._pause()
                    break
                size = INT32.unpack_from(buffer.data, start)[0] + 4
                if size > available or size < MIN_FRAME_BYTES:
                    self._check_size(size - 4)
                    buffer.wanted = size
                    break
                end = buffer.start = start + size
                shaped = self.shapes.match(buffer.data, start + 4, end)
                if shaped is not None:
                    service.produce.handle_shaped(self, shaped, buffer.view, now_ms)
                else:
                    self._serve(start + 4, end)
        except WireError as error:
            service.metrics.wire_errors.value += 1
            _log.info("bad request; closing", extra={"peer": self.peer, "reason": str(error)})
            self.close()
        except Exception:
            # A defect of ours: the connection goes, the broker stays.
            _log.exception("request failed; closing", extra={"peer": self.peer})
            self.close()
        service.committer.read_ends()
        if buffer.wanted > len(buffer.data) and not self._is_closing and not buffer.grow():
            self._wait_for_memory()

    def _check_size(self, size: int) -> None:
        limit = self._service.max_frame_bytes
        if not MIN_FRAME_BYTES <= size + 4 <= limit + 4:
            raise WireError(f"request of {size} bytes; socket.request.max.bytes is {limit}")

    def _serve(self, start: int, end: int) -> None:
        header = read_request_header(self._buffer.data, start, end)
        self._service.metrics.requests[header.api_key] += 1
        self._service.serve(self, self._buffer, start, end, header)

    # --- answers

    def reserve(self, answer: Answer) -> None:
        """Give `answer` its place behind all requests that came before."""
        self._answers.append(answer)

    def complete(self, answer: Answer) -> None:
        """`answer` is ready; send what can be sent in order."""
        answer.is_ready = True
        answers = self._answers
        if not answers or answers[0] is not answer:
            return
        pieces = answer.pieces
        answers.popleft()
        if answers and answers[0].is_ready:
            pieces = list(pieces)
            while answers and answers[0].is_ready:
                pieces.extend(answers.popleft().pieces)
        self._outbox.send(pieces)
        if self._is_paused:
            self._maybe_go_on()

    def send(self, *pieces: Piece) -> None:
        """Answer at once; keeps the order when earlier answers are still out."""
        if self._answers:
            answer = Answer()
            answer.pieces = pieces
            self.reserve(answer)
            self.complete(answer)
        else:
            self._outbox.send(pieces)

    # --- flow control

    def hold(self) -> None:
        """Serve no further request, and read none, until `go_on`."""
        self._is_held = True
        if not self._is_closing:
            self._pause()

    def go_on(self) -> None:
        """The request that held the connection is done."""
        self._is_held = False
        self._maybe_go_on()

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _maybe_go_on(self) -> None:
        if (
            self._is_paused
            and not self._is_closing
            and not self._is_held
            and not self._outbox.is_blocked
            and self._memory_timer is None
            and len(self._answers) <= self._service.max_inflight // 2
        ):
            self._service.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if not self._is_paused or self._is_closing or self._is_held:
            return
        self._is_paused = False
        self._take_requests()
        if not self._is_paused and not self._is_closing:
            self._transport.resume_reading()

    def _wait_for_memory(self) -> None:
        if self._memory_timer is None and not self._is_closing:
            self._pause()
            self._ask_for_memory()
            self._memory_tick(MEMORY_WAIT_SECONDS)

    def _ask_for_memory(self) -> None:
        loop = self._service.loop
        self._service.budget.wait(lambda: loop.call_soon(self._memory_came))

    def _memory_came(self) -> None:
        if self._is_closing:
            return
        if not self._buffer.grow():
            self._ask_for_memory()
            return
        if self._memory_timer is not None:
            self._memory_timer.cancel()
            self._memory_timer = None
        self._maybe_go_on()

    def _memory_tick(self, seconds_left: float) -> None:
        """Let go those who hold memory and send nothing; at last this client itself."""
        service = self._service
        if seconds_left <= 0:
            _log.warning("no memory for a large request; closing", extra={"peer": self.peer})
            self.close()
            return
        self._memory_timer = service.loop.call_later(1, self._memory_tick, seconds_left - 1)
        service.drop_stalled()

    @property
    def is_hoarding(self) -> bool:
        """It holds memory for a request that is not whole."""
        return self._buffer.is_grown and self._memory_timer is None

    def shrink(self) -> None:
        """Give back buffer memory that a quiet client does not need."""
        if not self.has_staged_views:
            self._buffer.shrink()

    def close(self) -> None:
        """Close at once; unanswered requests get no answer."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def finish(self) -> None:
        """Send what is written already, then close."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.close()

    @property
    def is_quiet(self) -> bool:
        """Nothing is owed to this client."""
        return not self._answers and self._outbox.is_empty
