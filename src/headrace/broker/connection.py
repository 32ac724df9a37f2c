"""One client connection: frames in, answers out in request order, bounded in both directions.

Reading stops while the client does not read its answers, while too many of
its requests are unanswered, or while the memory budget is used up; it goes on
by itself. A handler that cannot finish a request at once holds the connection:
no other request of it is served meanwhile, as Kafka mutes a channel.
"""

import asyncio
import logging
from collections import deque
from typing import Any

from headrace.broker.answers import Piece, QueuedAnswer
from headrace.broker.clock import Timer
from headrace.broker.outbox import Outbox
from headrace.broker.receive_buffer import ReceiveBuffer
from headrace.broker.service import Service
from headrace.protocol.errors import WireError
from headrace.protocol.headers import read_request_header
from headrace.protocol.primitives import INT32
from headrace.protocol.produce_shape import ProduceShapes

_log = logging.getLogger(__name__)

# The shortest request: its size, key, version, correlation id and a null client id.
MIN_FRAME_BYTES = 14
# A client that waits this long for memory to take its request in is let go.
MEMORY_WAIT_SECONDS = 30.0
# While memory is short, a large request must come in at 64 KiB a second, over five seconds: the
# slowest line anybody sends megabytes over does, one who trickles bytes to keep the memory does
# not.
MIN_BYTES_PER_MS = 64
# Of requests that lie in the buffer one behind the other; a power of two less one.
_LOOK_AT_CLOCK_EVERY = 7
STALLED_MS = 5_000


class ClientConnection(asyncio.BufferedProtocol):
    """Created by the server for each accepted socket. Event-loop thread only."""

    __slots__ = (
        "_answers",
        "_buffer",
        "_holds",
        "_is_closing",
        "_is_paused",
        "_memory_timer",
        "_outbox",
        "_progress",
        "_service",
        "_transport",
        "has_descriptor",
        "last_active_ms",
        "peer",
        "shapes",
    )  # fmt: skip

    def __init__(self, service: Service) -> None:
        self._service = service
        self._buffer = ReceiveBuffer(service.budget)
        self._answers: deque[QueuedAnswer] = deque()
        self._outbox = Outbox(
            service.loop,
            service.metrics.bytes_out,
            on_room=self._maybe_go_on,
            on_broken=self.close,
            reads=service.reads,
            sockets=service.sockets,
        )
        self._transport: Any = None
        self._is_paused = False
        self._holds = 0  # requests that are being served beside the loop's turns
        self._is_closing = False
        self._memory_timer: Timer | None = None
        # Of the incomplete request: how many of its bytes had come, and when that was noted.
        self._progress = (0, 0)
        self.shapes = ProduceShapes()
        self.has_descriptor = False  # counted in the quota of sockets
        self.last_active_ms = service.steady_ms()
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
        if self._memory_timer is not None:
            self._memory_timer.cancel()
        self._outbox.close()
        answers, self._answers = self._answers, deque()
        for answer in answers:
            answer.cancel()
        self._buffer.release()
        self._service.dismiss(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._buffer
        if buffer.block.loans:
            # What borrows of it is written now, so that one block is enough.
            self._service.committer.flush()
        return buffer.make_room()

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
        first = buffer.start
        service = self._service
        self.last_active_ms = service.steady_ms()
        now_ms = service.broker.now_ms()
        served = 0
        try:
            while not self._is_closing and not self._holds:
                start = buffer.start
                available = buffer.end - start
                if available < 4:
                    buffer.wanted = 0
                    break
                if len(self._answers) >= service.max_inflight or self._outbox.is_blocked:
                    self._pause()
                    break
                size = INT32.unpack_from(buffer.data, start)[0] + 4
                if size > available or size < MIN_FRAME_BYTES:
                    self._check_size(size - 4)
                    if start != first or not buffer.wanted:
                        self._progress = (available, self.last_active_ms)
                    buffer.wanted = size
                    break
                served += 1
                if not served & _LOOK_AT_CLOCK_EVERY and service.is_turn_over():
                    # Others first; what is here is served in the next turn.
                    self._pause()
                    service.loop.call_soon(self._go_on)
                    break
                end = buffer.start = start + size
                block = buffer.block
                shaped = None
                if not block.is_large:
                    shaped = self.shapes.match(buffer.data, start + 4, end)
                if shaped is not None:
                    service.produce.handle_shaped(self, shaped, block, now_ms)
                else:
                    self._serve(start + 4, end)
        except WireError as error:
            self.refuse(error)
        except Exception:
            # A defect of ours: the connection goes, the broker stays. What the request had
            # staged before is in its log's order by now, so it is written.
            _log.exception("request failed; closing", extra={"peer": self.peer})
            service.committer.flush()
            self.close()
        service.committer.read_ends()
        if buffer.must_grow and not self._is_closing and not buffer.grow():
            self._wait_for_memory()

    def _check_size(self, size: int) -> None:
        limit = self._service.max_frame_bytes
        if not MIN_FRAME_BYTES <= size + 4 <= limit + 4:
            raise WireError(f"request of {size} bytes; socket.request.max.bytes is {limit}")

    def _serve(self, start: int, end: int) -> None:
        header = read_request_header(self._buffer.data, start, end)
        self._service.metrics.requests[header.api_key] += 1
        self._service.serve(self, self._buffer, start, end, header)

    def refuse(self, error: WireError) -> None:
        """Its bytes make no sense: there is nothing to go on with."""
        self._service.metrics.wire_errors.value += 1
        _log.info("bad request; closing", extra={"peer": self.peer, "reason": str(error)})
        self.close()

    # --- answers

    def reserve(self, answer: QueuedAnswer) -> None:
        """Give `answer` its place behind all requests that came before."""
        self._answers.append(answer)

    def complete(self, answer: QueuedAnswer) -> None:
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
            answer = QueuedAnswer()
            answer.pieces = pieces
            self.reserve(answer)
            self.complete(answer)
        else:
            self._outbox.send(pieces)

    # --- flow control

    def hold(self) -> None:
        """Serve no further request, and read none, until `go_on`."""
        self._holds += 1
        if not self._is_closing:
            self._pause()

    def go_on(self) -> None:
        """The request that held the connection is done."""
        self._holds -= 1
        self._maybe_go_on()

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _maybe_go_on(self) -> None:
        if (
            self._is_paused
            and not self._is_closing
            and not self._holds
            and not self._outbox.is_blocked
            and self._memory_timer is None
            and len(self._answers) <= self._service.max_inflight // 2
        ):
            self._service.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if not self._is_paused or self._is_closing or self._holds or self._memory_timer is not None:
            return
        self._is_paused = False
        buffer = self._buffer
        # Nobody could send meanwhile.
        self._progress = (buffer.end - buffer.start, self._service.steady_ms())
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
        if self._buffer.grow():
            self._stop_waiting_for_memory()
        else:
            self._ask_for_memory()

    def _stop_waiting_for_memory(self) -> None:
        if self._memory_timer is not None:
            self._memory_timer.cancel()
            self._memory_timer = None
        self._maybe_go_on()

    def _memory_tick(self, seconds_left: float) -> None:
        """Let go those who hold memory and send nothing; at last this client itself."""
        service = self._service
        if self._is_closing:
            return
        if self._memory_timer is not None and self._buffer.grow():
            self._stop_waiting_for_memory()
            return
        if seconds_left <= 0:
            _log.warning("no memory for a large request; closing", extra={"peer": self.peer})
            self.close()
            return
        clock = service.broker.clock
        # By this clock: what lies in the sockets is read before anybody is let go.
        self._memory_timer = clock.call_at(
            clock.steady_ms() + 1_000, lambda: self._memory_tick(seconds_left - 1)
        )
        service.drop_stalled()

    def is_hoarding(self, now_ms: int) -> bool:
        """It holds memory for a request that does not get whole: bytes come too slowly, or not."""
        buffer = self._buffer
        if not buffer.is_grown or self._memory_timer is not None or not buffer.wanted:
            return False
        if self._outbox.is_blocked:
            return now_ms - self.last_active_ms > STALLED_MS  # it does not take its answers
        if self._is_paused:
            return False  # it is we who do not read
        noted, noted_ms = self._progress
        if now_ms - noted_ms < STALLED_MS:
            return False
        received = buffer.end - buffer.start
        self._progress = (received, now_ms)
        return received - noted < (now_ms - noted_ms) * MIN_BYTES_PER_MS

    def shrink(self) -> None:
        """Give back buffer memory that a quiet client does not need."""
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
        return not self._answers and not self._holds and self._outbox.is_empty
