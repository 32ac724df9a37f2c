"""Fetch (1), v4-18: find file ranges, answer around them, or wait until there is enough.

v7   sessions (KIP-227)
v13  topics by id; an unknown one is error 100

The first partition that has data gives at least one whole batch, whatever the
limits say (KIP-74); the others only what fits.
"""

import logging
from collections.abc import Generator, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from headrace.broker.error_codes import code_for
from headrace.broker.fetch_answers import Found, Harvest
from headrace.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, Watched
from headrace.broker.handlers.leader_epoch import check_leader_epoch
from headrace.broker.pending_fetch import PendingFetch, Steps
from headrace.errors import CorruptBatchError, HeadraceError, OffsetOutOfRangeError, TopicError
from headrace.log.access import BLOCKING, RESIDENT, Access, NotReadyError
from headrace.log.partition_log import FileSlice, PartitionLog
from headrace.log.verifying import prepare
from headrace.protocol.fetch import STEP_ELEMENTS, FetchRequest, PartitionHead
from headrace.protocol.headers import RequestHeader

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.service import Service

_log = logging.getLogger(__name__)

VERSIONS = range(4, 19)
# Partitions that a request may name beyond those there are: a consumer of the largest topic may
# not know yet that it was deleted.
SPARE_PARTITIONS = 10_000
# A request up to this size is read where it lies, for it cannot hold enough elements (of three
# bytes at least) for a step; others may be read over several turns of the loop, and the buffer
# is not theirs that long.
SMALL_REQUEST_BYTES = 3 * STEP_ELEMENTS
# A harvest makes a step when it has taken this long.
STEP_SECONDS = 0.002
# A read that is still not ready then (its pages or its index are lost again and again) waits.
MAX_PREPARATIONS = 20
_UNKNOWN = -1


class FetchHandler:
    """Resolves sessions, finds logs and file ranges. Event-loop thread only."""

    def __init__(self, service: "Service") -> None:
        self.service = service
        self._finder = service.finder
        self._reported: set[tuple[Path, int]] = set()
        self.max_bytes = service.broker.settings.int("fetch.max.bytes")

    def handle(
        self, connection: "Connection", data: bytearray, end: int, header: RequestHeader
    ) -> None:
        """Serve one request."""
        pending = PendingFetch(self, connection, header)
        size = end - header.body
        if size <= SMALL_REQUEST_BYTES:
            pending.start(data, header.body, end, size)
            return
        with memoryview(data) as view:
            copy = bytes(view[header.body : end])
        # A partition is named at most once, with its topic.
        count = self.service.broker.topics.partition_count
        pending.start(copy, 0, size, 2 * (count + SPARE_PARTITIONS))

    def find_session(
        self, request: FetchRequest, has_ids: bool
    ) -> Generator[None, None, tuple[ErrorCode, FetchSession | None]]:
        """(error, session) of a request; no session where it asks for none or there is no room."""
        sessions = self.service.sessions
        now_ms = self.service.broker.now_ms()
        if request.session_epoch > INITIAL_EPOCH:
            session = sessions.get(request.session_id)
            if session is None:
                return ErrorCode.fetch_session_id_not_found, None
            if session.epoch != request.session_epoch:
                return ErrorCode.invalid_fetch_session_epoch, None
            if session.has_topic_ids != has_ids:
                return ErrorCode.fetch_session_topic_id_error, None
            session.advance(now_ms)
            if request.topics or request.forgotten:
                yield from session.take_in(request)
                if not sessions.settle(session, now_ms):
                    return ErrorCode.fetch_session_id_not_found, None
            return ErrorCode.none, session
        if request.session_id:
            sessions.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH or not request.topics:
            return ErrorCode.none, None
        partitions = sum([len(asked) for _, asked in request.topics])
        session = sessions.open(has_ids, now_ms, partitions)
        if session is not None:
            yield from session.take_in(request)
            if not sessions.settle(session, now_ms):
                session = None
        return ErrorCode.none, session

    def reap(
        self, watched: Iterable[Watched], has_ids: bool, allowed: int, harvest: Harvest
    ) -> Steps:
        """Look at every partition, for `allowed` bytes of all of them, and add it to `harvest`."""
        step_ends = 0.0
        until_look = 2
        for one in watched:
            until_look -= 1
            if not until_look:
                # By the clock: a log that is opened for the first time takes as long as a hundred.
                until_look = 2
                now = perf_counter()
                if not step_ends:
                    step_ends = now + STEP_SECONDS
                elif now >= step_ends:
                    yield None
                    step_ends = perf_counter() + STEP_SECONDS
            try:
                self._look(one, has_ids, allowed, harvest, RESIDENT)
            except NotReadyError as error:
                yield from self._look_patiently(one, has_ids, allowed, harvest, error)
                step_ends = perf_counter() + STEP_SECONDS

    def _look_patiently(
        self,
        one: Watched,
        has_ids: bool,
        allowed: int,
        harvest: Harvest,
        not_ready: NotReadyError,
    ) -> Steps:
        for _ in range(MAX_PREPARATIONS):
            try:
                yield prepare(not_ready.need)
            except OSError:
                self._add_failed(one, ErrorCode.kafka_storage_error, harvest)
                return
            try:
                self._look(one, has_ids, allowed, harvest, RESIDENT)
            except NotReadyError as error:
                not_ready = error
            else:
                return
        self._look(one, has_ids, allowed, harvest, BLOCKING)

    def _look(
        self, one: Watched, has_ids: bool, allowed: int, harvest: Harvest, access: Access
    ) -> None:
        try:
            log = self._finder.find(one.topic, one.partition, has_ids)
            if epoch_code := check_leader_epoch(log, one.leader_epoch):
                self._add_failed(one, epoch_code, harvest)
                return
            left = allowed - harvest.byte_count
            slices = self._read(log, one, left, access, is_first=not harvest.byte_count)
        except TopicError as error:
            # As in Kafka, what is not there does not keep the rest from waiting.
            harvest.add(self._failed(one, code_for(error), error))
            return
        except HeadraceError as error:
            self._add_failed(one, code_for(error), harvest, error)
            return
        except OSError:
            self._add_failed(one, ErrorCode.kafka_storage_error, harvest)
            return
        end = log.log_end_offset
        head = PartitionHead(one.partition, 0, end, end, log.log_start_offset)
        byte_count = sum([piece.length for piece in slices]) if slices else 0
        found = Found(one, head, slices, byte_count)
        harvest.logs[log] = found
        harvest.add(found)

    def _read(
        self, log: PartitionLog, one: Watched, left: int, access: Access, *, is_first: bool
    ) -> list[FileSlice]:
        if left <= 0 and not is_first:
            if not log.log_start_offset <= one.offset <= log.log_end_offset:
                raise OffsetOutOfRangeError(one.offset, log.log_start_offset, log.log_end_offset)
            return []
        limit = min(left, one.max_bytes)
        slices = log.read(one.offset, limit, access=access)
        if not is_first and slices and slices[0].length > limit:
            return []  # its first batch does not fit; the next fetch starts with it
        return slices

    def _add_failed(
        self, one: Watched, code: ErrorCode, harvest: Harvest, error: HeadraceError | None = None
    ) -> None:
        harvest.has_error = True
        harvest.add(self._failed(one, code, error))

    def _failed(self, one: Watched, code: ErrorCode, error: HeadraceError | None = None) -> Found:
        metrics = self.service.metrics
        metrics.count_error(1, code)
        start = end = _UNKNOWN
        if isinstance(error, CorruptBatchError):
            metrics.corrupt_reads.value += 1
            self._report_damage(error)
        elif isinstance(error, OffsetOutOfRangeError):
            start, end = error.start, error.end
        head = PartitionHead(one.partition, code, end, end, start)
        return Found(one, head, [], 0)

    def _report_damage(self, error: CorruptBatchError) -> None:
        place = (error.path, error.position)
        if place not in self._reported:
            self._reported.add(place)
            _log.error("damaged batch, not served: %s", error)
