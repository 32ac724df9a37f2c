"""Fetch (1), v4-18: find file ranges, answer around them, or wait until there is enough.

v7   sessions (KIP-227)
v13  topics by id; an unknown one is error 100

The first partition that has data gives at least one whole batch, whatever the
limits say (KIP-74); the others only what fits.
"""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.errors import ErrorCode

from headrace.broker.answers import Answer, Piece
from headrace.broker.error_codes import code_for
from headrace.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, Watched
from headrace.broker.handlers.leader_epoch import check_leader_epoch
from headrace.errors import CorruptBatchError, HeadraceError, OffsetOutOfRangeError, TopicError
from headrace.log.partition_log import FileSlice, PartitionLog
from headrace.protocol import fetch
from headrace.protocol.fetch import FetchLayout, FetchRequest, PartitionHead
from headrace.protocol.headers import RequestHeader

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.service import Service

_log = logging.getLogger(__name__)

VERSIONS = range(4, 19)
READ_COMMITTED = 1
_UNKNOWN = -1


class _Found(NamedTuple):
    """What one partition has to give."""

    watched: Watched
    head: PartitionHead
    slices: list[FileSlice]
    byte_count: int


class _Harvest(NamedTuple):
    """What all partitions of a request have to give now."""

    found: list[_Found]
    logs: list[PartitionLog]
    byte_count: int
    has_error: bool


class PendingFetch(Answer):
    """A request that is being served, perhaps after a wait."""

    __slots__ = ("_connection", "_grown_bytes", "_handler", "_has_ids", "_header", "_logs",
                 "_missing_bytes", "_timer", "request", "session", "watched")  # fmt: skip

    def __init__(
        self,
        handler: "FetchHandler",
        connection: "Connection",
        header: RequestHeader,
        request: FetchRequest,
        watched: Iterable[Watched],
        session: FetchSession | None,
    ) -> None:
        self.is_ready = False
        self.pieces = ()
        self._handler = handler
        self._connection = connection
        self._header = header
        self._has_ids = header.api_version >= fetch.TOPIC_IDS_FROM
        self._timer: asyncio.TimerHandle | None = None
        self._logs: list[PartitionLog] = []
        self._missing_bytes = 0
        self._grown_bytes = 0
        self.request = request
        self.session = session
        self.watched = watched

    def start(self) -> None:
        """Answer now if there is enough, else wait."""
        harvest = self._handler.harvest(self.request, self.watched, self._has_ids)
        request = self.request
        if (
            harvest.byte_count >= request.min_bytes
            or harvest.has_error
            or request.max_wait_ms <= 0
            or not harvest.logs
            or self._handler.service.is_draining
        ):
            self._finish(harvest)
            return
        self._logs = harvest.logs
        self._missing_bytes = request.min_bytes - harvest.byte_count
        service = self._handler.service
        service.waiting.add(self, self._logs)
        service.metrics.fetch_waiters.value += 1
        self._timer = service.loop.call_later(request.max_wait_ms / 1000, self._wake)

    def on_append(self, byte_count: int) -> None:
        """A log that is waited for has grown."""
        self._grown_bytes += byte_count
        if self._grown_bytes >= self._missing_bytes:
            self._wake()

    def _wake(self) -> None:
        if self._timer is not None:
            self.cancel()
            self._finish(self._handler.harvest(self.request, self.watched, self._has_ids))

    def cancel(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            service = self._handler.service
            self._timer.cancel()
            self._timer = None
            service.waiting.remove(self, self._logs)
            service.metrics.fetch_waiters.value -= 1

    def _finish(self, harvest: _Harvest) -> None:
        found = harvest.found
        if self.session is not None and self.request.session_epoch > INITIAL_EPOCH:
            found = [one for one in found if one.byte_count or _is_news(one)]
        for one in found:
            if self.session is not None:
                one.watched.high_watermark = one.head.high_watermark
                one.watched.log_start_offset = one.head.log_start_offset
                if one.byte_count:
                    self.session.served(one.watched)
        session_id = 0 if self.session is None else self.session.session_id
        self._handler.service.metrics.fetched_bytes.value += harvest.byte_count
        is_committed = self.request.isolation_level == READ_COMMITTED
        self.pieces = encode(self._header, 0, session_id, found, is_committed=is_committed)
        self._connection.complete(self)


def _is_news(one: _Found) -> bool:
    return (
        one.head.error_code != 0
        or one.head.high_watermark != one.watched.high_watermark
        or one.head.log_start_offset != one.watched.log_start_offset
    )


def encode(
    header: RequestHeader,
    error_code: int,
    session_id: int,
    found: list[_Found],
    *,
    is_committed: bool = False,
) -> list[Piece]:
    """The pieces of a whole response frame."""
    layout = FetchLayout.of(header.api_version)
    topics: list[tuple[bytes, list[_Found]]] = []
    for one in found:
        if topics and topics[-1][0] == one.watched.topic:
            topics[-1][1].append(one)
        else:
            topics.append((one.watched.topic, [one]))
    pieces: list[Piece] = []
    text = bytearray(layout.head(error_code, session_id, len(topics)))
    size = 0
    for topic, partitions in topics:
        text += layout.topic_head(topic, len(partitions))
        for one in partitions:
            text += layout.partition_head(one.head, one.byte_count, is_committed=is_committed)
            if one.byte_count:
                size += len(text) + one.byte_count
                pieces.append(bytes(text))
                pieces.extend(one.slices)
                text = bytearray()
            text += layout.partition_tail
        text += layout.topic_tail
    text += layout.tail
    size += len(text)
    pieces.append(bytes(text))
    frame_head = layout.frame_head(header.correlation_id, size)
    first = pieces[0]
    pieces[0] = frame_head + first if isinstance(first, bytes) else frame_head
    return pieces


class FetchHandler:
    """Resolves sessions, finds logs and file ranges. Event-loop thread only."""

    def __init__(self, service: "Service") -> None:
        self.service = service
        self._finder = service.finder
        self._reported: set[tuple[Path, int]] = set()
        self._max_bytes = service.broker.settings.int("fetch.max.bytes")

    def handle(
        self, connection: "Connection", data: bytearray, end: int, header: RequestHeader
    ) -> None:
        """Serve one request."""
        request = fetch.read_request(data, header.body, end, header.api_version)
        # What was produced before, on any connection, can be read now.
        self.service.committer.flush()
        has_ids = header.api_version >= fetch.TOPIC_IDS_FROM
        session: FetchSession | None = None
        if request.session_epoch > INITIAL_EPOCH:
            code, session = self._resume(request, has_ids)
            if session is None:
                connection.send(*encode(header, code, 0, []))
                return
        else:
            session = self._begin(request, has_ids)
        watched: Iterable[Watched]
        if session is not None:
            watched = session.watched.values()
        else:
            watched = [
                Watched(topic, asked)
                for topic, partitions in request.topics
                for asked in partitions
            ]
        pending = PendingFetch(self, connection, header, request, watched, session)
        connection.reserve(pending)
        pending.start()

    def _resume(self, request: FetchRequest, has_ids: bool) -> tuple[int, FetchSession | None]:
        session = self.service.sessions.get(request.session_id)
        if session is None:
            return ErrorCode.fetch_session_id_not_found, None
        if session.epoch != request.session_epoch:
            return ErrorCode.invalid_fetch_session_epoch, None
        if session.has_topic_ids != has_ids:
            return ErrorCode.fetch_session_topic_id_error, None
        session.take_in(request)
        session.advance(self.service.broker.now_ms())
        return 0, session

    def _begin(self, request: FetchRequest, has_ids: bool) -> FetchSession | None:
        if request.session_id:
            self.service.sessions.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH or not request.topics:
            return None
        session = self.service.sessions.open(has_ids, self.service.broker.now_ms())
        if session is not None:
            session.take_in(request)
        return session

    def harvest(self, request: FetchRequest, watched: Iterable[Watched], has_ids: bool) -> _Harvest:
        """Look at every partition, within the request's limits."""
        left = min(request.max_bytes, self._max_bytes)
        found: list[_Found] = []
        logs: list[PartitionLog] = []
        total = 0
        has_error = False
        for one in watched:
            try:
                log = self._finder.find(one.topic, one.partition, has_ids)
                if epoch_code := check_leader_epoch(log, one.leader_epoch):
                    has_error = True
                    found.append(self._failed(one, epoch_code))
                    continue
                logs.append(log)
                slices = self._read(log, one, left, is_first=not total)
            except TopicError as error:
                # As in Kafka, what is not there does not keep the rest from waiting.
                found.append(self._failed(one, code_for(error), error))
                continue
            except HeadraceError as error:
                has_error = True
                found.append(self._failed(one, code_for(error), error))
                continue
            except OSError:
                has_error = True
                found.append(self._failed(one, ErrorCode.kafka_storage_error))
                continue
            byte_count = sum([piece.length for piece in slices])
            left -= byte_count
            total += byte_count
            end = log.log_end_offset
            head = PartitionHead(one.partition, 0, end, end, log.log_start_offset)
            found.append(_Found(one, head, slices, byte_count))
        return _Harvest(found, logs, total, has_error)

    def _read(
        self, log: PartitionLog, one: Watched, left: int, *, is_first: bool
    ) -> list[FileSlice]:
        if left <= 0 and not is_first:
            if not log.log_start_offset <= one.offset <= log.log_end_offset:
                raise OffsetOutOfRangeError(one.offset, log.log_start_offset, log.log_end_offset)
            return []
        limit = min(left, one.max_bytes)
        slices = log.read(one.offset, limit)
        if not is_first and slices and slices[0].length > limit:
            return []  # its first batch does not fit; the next fetch starts with it
        return slices

    def _failed(self, one: Watched, code: ErrorCode, error: HeadraceError | None = None) -> _Found:
        metrics = self.service.metrics
        metrics.count_error(1, code)
        start = end = _UNKNOWN
        if isinstance(error, CorruptBatchError):
            metrics.corrupt_reads.value += 1
            self._report_damage(error)
        elif isinstance(error, OffsetOutOfRangeError):
            start, end = error.start, error.end
        head = PartitionHead(one.partition, code, end, end, start)
        return _Found(one, head, [], 0)

    def _report_damage(self, error: CorruptBatchError) -> None:
        place = (error.path, error.position)
        if place not in self._reported:
            self._reported.add(place)
            _log.error("damaged batch, not served: %s", error)
