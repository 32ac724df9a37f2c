"""Fetch (1): find file ranges, answer around them, or wait until there is enough.

v7   sessions (KIP-227)
v13  topics by id; an unknown one is error 100

A fetch runs through at once when it can: the common one makes no task. One that names
thousands of partitions, or needs a thread to read or check something first, stops at a
step, holds its connection as Kafka mutes a channel, and goes on as a task in the turns
that long work shares (`turns.py`).
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from itertools import islice

from kio.schema.errors import ErrorCode

from headrace.broker.answers import Channel, QueuedAnswer
from headrace.broker.committer import Committer
from headrace.broker.fetch_answers import (
    STEP_PARTITIONS,
    FetchedPartition,
    FetchedPartitions,
    encode,
)
from headrace.broker.fetch_reader import FetchReader, Steps
from headrace.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    FetchSessions,
    Watched,
)
from headrace.broker.read_threads import ReadThreads
from headrace.broker.state import BrokerState
from headrace.broker.turns import Turn
from headrace.broker.waiting_fetches import WaitingFetches
from headrace.log.partition_log import PartitionLog
from headrace.log.verifying import Preparation
from headrace.metrics import Metrics
from headrace.protocol import fetch
from headrace.protocol.errors import TooManyElementsError, WireError
from headrace.protocol.fetch import STEP_ELEMENTS, FetchRequest
from headrace.protocol.headers import RequestHeader

_log = logging.getLogger(__name__)

READ_COMMITTED = 1
# Partitions that a request may name beyond those there are: a consumer of the largest topic may
# not know yet that it was deleted.
SPARE_PARTITIONS = 10_000
# A request up to this size is read where it lies, for it cannot hold enough elements (of three
# bytes at least) for a step; others may be read over several turns of the loop, and the buffer
# is not theirs that long.
SMALL_REQUEST_BYTES = 3 * STEP_ELEMENTS
# Too many wait already: this one is not told of appends but looks again after a while.
CROWDED_WAIT_MS = 100

_NO_LOGS: dict[PartitionLog, FetchedPartition] = {}


class FetchHandler:
    """What all fetches share. Event-loop thread only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker: BrokerState,
        metrics: Metrics,
        *,
        reader: FetchReader,
        sessions: FetchSessions,
        committer: Committer,
        reads: ReadThreads,
        waiting: WaitingFetches,
    ) -> None:
        self.loop, self.metrics, self.now_ms = loop, metrics, broker.now_ms
        self.reader, self.sessions = reader, sessions
        self.committer, self.reads, self.waiting = committer, reads, waiting
        self.max_bytes = broker.settings.int("fetch.max.bytes")
        self._topics = broker.topics

    def handle(self, connection: Channel, data: bytearray, end: int, header: RequestHeader) -> None:
        """Serve one request."""
        pending = PendingFetch(self, connection, header)
        size = end - header.body
        if size <= SMALL_REQUEST_BYTES:
            pending.start(data, header.body, end, size)
            return
        with memoryview(data) as view:
            copy = bytes(view[header.body : end])
        # A partition is named at most once, with its topic.
        count = self._topics.partition_count
        pending.start(copy, 0, size, 2 * (count + SPARE_PARTITIONS))


class PendingFetch(QueuedAnswer):
    """Event-loop thread only."""

    __slots__ = ("_connection", "_grown", "_grown_bytes", "_handler", "_has_ids", "_header",
                 "_is_held", "_is_waiting", "_kept", "_logs", "_missing_bytes", "_request",
                 "_sees_all", "_session", "_task", "_timer", "_unknown_count",
                 "_watched")  # fmt: skip

    def __init__(self, handler: "FetchHandler", connection: Channel, header: RequestHeader) -> None:
        self.is_ready = False
        self.pieces = ()
        self._handler = handler
        self._connection = connection
        self._header = header
        self._has_ids = header.api_version >= fetch.TOPIC_IDS_FROM
        self._task: asyncio.Task[None] | None = None
        self._is_held = False
        self._is_waiting = False
        self._unknown_count = 0  # partitions it waits with and that are not there
        self._logs = _NO_LOGS  # waited for
        # Set on its way.
        self._request: FetchRequest
        self._session: FetchSession | None
        self._watched: list[Watched]
        # Set when it begins to wait.
        self._timer: asyncio.TimerHandle
        self._kept: list[FetchedPartition] | None  # what an incremental answer has to tell already
        self._grown: dict[PartitionLog, None]
        self._grown_bytes: int
        self._missing_bytes: int
        self._sees_all: bool

    # --- its course

    def start(self, data: bytes | bytearray, position: int, end: int, max_elements: int) -> None:
        """Answer the request in `data`, now or later."""
        self._connection.reserve(self)
        self._run(self._serve(data, position, end, max_elements))

    def _run(self, steps: Steps) -> None:
        for preparation in steps:
            if not self._is_held:
                self._is_held = True
                self._connection.hold()
            self._task = self._handler.loop.create_task(self._run_on(preparation, steps))
            return

    async def _run_on(self, preparation: Preparation | None, steps: Steps) -> None:
        turn = Turn()
        handler = self._handler
        try:
            while True:
                try:
                    if preparation is None:
                        await turn.breathe()
                    else:
                        await handler.reads.carry_out(preparation)
                except OSError as error:
                    preparation = steps.throw(error)
                else:
                    preparation = next(steps)
        except StopIteration:
            return
        except WireError as error:
            handler.metrics.wire_errors.value += 1
            facts = {"peer": self._connection.peer, "reason": str(error)}
            _log.info("bad request; closing", extra=facts)
        except Exception:
            _log.exception("request failed; closing", extra={"peer": self._connection.peer})
        self._connection.close()

    def _serve(self, data: bytes | bytearray, position: int, end: int, max_elements: int) -> Steps:
        handler = self._handler
        version = self._header.api_version
        try:
            request = yield from fetch.read_steps(data, position, end, version, max_elements)
        except TooManyElementsError as error:
            if version < fetch.SESSIONS_FROM:
                raise  # the answer has no place for an error yet
            facts = {"peer": self._connection.peer, "reason": str(error)}
            _log.info("fetch refused", extra=facts)
            yield from self._refuse(ErrorCode.invalid_request)
            return
        self._request = request
        session = None
        if request.session_id or request.session_epoch != FINAL_EPOCH:
            code, session = yield from handler.sessions.find(
                request, self._has_ids, handler.now_ms()
            )
            if code:
                yield from self._refuse(code)
                return
        self._session = session
        if session is not None:
            # A list: another request may change the session while this one is under way.
            self._watched = list(session.watched.values())
        elif not self._is_held:
            self._watched = [
                Watched(topic, asked)
                for topic, partitions in request.topics
                for asked in partitions
            ]
        else:
            self._watched = yield from _watched_of(request)
        # What was produced before, on any connection, can be read now.
        handler.committer.flush()
        fetched = FetchedPartitions()
        max_bytes = min(request.max_bytes, handler.max_bytes)
        yield from handler.reader.read(self._watched, self._has_ids, max_bytes, fetched)
        min_bytes = min(request.min_bytes, max_bytes)
        if (
            fetched.byte_count >= min_bytes
            or fetched.has_error
            or request.max_wait_ms <= 0
            or not fetched.logs
            or handler.waiting.is_closed
        ):
            yield from self._finish(fetched)
        else:
            yield from self._wait(fetched, min_bytes - fetched.byte_count)

    def _refuse(self, code: ErrorCode) -> Steps:
        self._handler.metrics.count_error(1, code)
        self.pieces = yield from encode(self._header, code, 0, [])
        self._complete()

    @property
    def _is_incremental(self) -> bool:
        return self._session is not None and self._request.session_epoch > INITIAL_EPOCH

    def _finish(self, fetched: FetchedPartitions) -> Steps:
        found, session = fetched.partitions, self._session
        session_id = 0
        if session is not None:
            session_id = session.session_id
            if self._is_incremental:
                found = yield from _news(found)
            left = STEP_PARTITIONS
            for one in found:
                one.watched.high_watermark = one.head.high_watermark
                one.watched.log_start_offset = one.head.log_start_offset
                if one.byte_count:
                    session.served(one.watched)
                left -= 1
                if not left:
                    left = STEP_PARTITIONS
                    yield None
        self._handler.metrics.fetched_bytes.value += fetched.byte_count
        is_committed = self._request.isolation_level == READ_COMMITTED
        self.pieces = yield from encode(
            self._header, 0, session_id, found, is_committed=is_committed
        )
        self._complete()

    def _complete(self) -> None:
        self._connection.complete(self)
        if self._is_held:
            self._is_held = False
            self._connection.go_on()

    # --- waiting

    def _wait(self, fetched: FetchedPartitions, missing_bytes: int) -> Steps:
        handler = self._handler
        wait_ms = self._request.max_wait_ms
        self._missing_bytes = missing_bytes
        self._grown_bytes = 0
        self._grown = {}
        self._kept = None
        self._sees_all = False
        if handler.waiting.is_crowded:
            wait_ms = min(wait_ms, CROWDED_WAIT_MS)
            self._sees_all = True
        else:
            if self._is_incremental:
                self._kept = yield from _news(fetched.partitions)
            logs = self._logs = fetched.logs
            if len(logs) <= STEP_PARTITIONS:
                handler.waiting.add(self, logs)
            else:
                yield from self._in_pieces(handler.waiting.add)
            if self._is_held and (grown := [log for log in logs if _has_grown(log, logs[log])]):
                # Others had the loop since these were looked at.
                self._grown.update(dict.fromkeys(grown))
                self._grown_bytes = self._missing_bytes
        handler.metrics.fetch_waiters.value += 1
        # What it names and is not there takes memory as well.
        self._unknown_count = max(0, len(self._watched) - len(self._logs))
        handler.waiting.places += self._unknown_count
        self._is_waiting = True
        self._timer = handler.loop.call_later(wait_ms / 1000, self._wake)
        if self._is_held:
            # Nothing is under way: the client may go on, or be seen to go.
            self._is_held = False
            self._connection.go_on()
        if self._grown_bytes >= self._missing_bytes:
            self._wake()

    def _in_pieces(self, act: "Callable[[PendingFetch, list[PartitionLog]], None]") -> Steps:
        logs = iter(self._logs)
        while piece := list(islice(logs, STEP_PARTITIONS)):
            act(self, piece)
            yield None

    def on_append(self, log: PartitionLog | None, byte_count: int) -> None:
        """A log that is waited for has grown; None: everything may be different."""
        if log is None:
            self._sees_all = True
        elif self._kept is not None:
            self._grown[log] = None
        self._grown_bytes += byte_count
        if self._grown_bytes >= self._missing_bytes:
            self._wake()

    def _wake(self) -> None:
        if self._is_waiting:
            self._stop_waiting()
            self._run(self._serve_woken())

    def _stop_waiting(self) -> None:
        self._is_waiting = False
        self._timer.cancel()
        self._handler.waiting.places -= self._unknown_count
        self._handler.metrics.fetch_waiters.value -= 1

    def _serve_woken(self) -> Steps:
        waiting = self._handler.waiting
        if len(self._logs) <= STEP_PARTITIONS:
            waiting.remove(self, self._logs)
        else:
            yield None  # not inside the append that woke it, and perhaps others like it
            yield from self._in_pieces(waiting.remove)
        fetched = FetchedPartitions()
        watched = self._watched
        if self._kept is not None and not self._sees_all:
            # The rest was looked at, and has not grown since.
            grown = {id(self._logs[log].watched) for log in self._grown}
            for one in self._kept:
                if id(one.watched) not in grown:
                    fetched.add(one)
            watched = [self._logs[log].watched for log in self._grown]
        self._logs = _NO_LOGS
        max_bytes = min(self._request.max_bytes, self._handler.max_bytes)
        yield from self._handler.reader.read(watched, self._has_ids, max_bytes, fetched)
        yield from self._finish(fetched)

    def cancel(self) -> None:
        """The client is gone: wait no longer."""
        if self._task is not None:
            self._task.cancel()
        if self._is_waiting:
            self._stop_waiting()
        if self._logs:
            self._handler.waiting.remove(self, self._logs)


def _has_grown(log: PartitionLog, found: FetchedPartition) -> bool:
    return log.log_end_offset != found.head.high_watermark


def _watched_of(request: FetchRequest) -> Generator[None, None, list[Watched]]:
    watched: list[Watched] = []
    left = STEP_PARTITIONS
    for topic, partitions in request.topics:
        for asked in partitions:
            watched.append(Watched(topic, asked))
            left -= 1
            if not left:
                left = STEP_PARTITIONS
                yield
    return watched


def _news(found: list[FetchedPartition]) -> Generator[None, None, list[FetchedPartition]]:
    news: list[FetchedPartition] = []
    for start in range(0, len(found), STEP_PARTITIONS):
        if start:
            yield
        news += [one for one in found[start : start + STEP_PARTITIONS] if one.is_news]
    return news
