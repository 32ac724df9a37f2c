"""Produce (0), v3-13: check, stage, let the committer write, acknowledge.

v13  topics by id; an unknown one is error 100

Versions 0-2 are advertised but not served (see `dispatch`).
"""

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.errors import ErrorCode

from headrace.broker.answers import Answer
from headrace.broker.committer import Failures
from headrace.broker.error_codes import code_for
from headrace.errors import (
    HeadraceError,
    InvalidRecordError,
    InvalidTimestampError,
    StorageWriteError,
    UnexpectedTransactionError,
    WireError,
)
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.protocol import produce
from headrace.protocol.headers import RequestHeader
from headrace.protocol.produce import PartitionResult
from headrace.protocol.produce_shape import ShapedRequest
from headrace.records.batch import TRANSACTIONAL_BIT
from headrace.records.record import iter_records
from headrace.records.validation import check_for_append

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.service import Service

VERSIONS = range(0, 14)
FIRST_SERVED = 3
ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1


class _Entry(NamedTuple):
    """One partition of a request: where its batch went, or why not."""

    partition: int
    log: PartitionLog | None
    result: AppendResult | None
    error: HeadraceError | None
    code: int = 0


class ShapedProduce(Answer):
    """The common case: one batch for one partition, in a request like those before it."""

    __slots__ = ("_connection", "_handler", "_log", "_must_sync", "_request", "error", "result")

    def __init__(
        self, handler: "ProduceHandler", connection: "Connection", request: ShapedRequest
    ) -> None:
        self.is_ready = False
        self.pieces = ()
        self._handler = handler
        self._connection = connection
        self._request = request
        self._log, self.result, self.error = handler.stage_shaped(connection, request)
        self._must_sync = handler.take_sync_duty(request.shape.acks)

    def on_commit(self, failures: Failures) -> None:
        """The batch is in its file, unless its log failed."""
        self._connection.has_staged_views = False
        log = self._log
        if failures and log in failures and self.error is None:
            self.error = failures[log]
        if (
            self._must_sync
            and self.result is not None
            and self.error is None
            and log is not None
            and self.result.last_offset >= log.recovery_point
        ):
            self._handler.sync.wait(log, self._on_sync)
        else:
            self._finish()

    def _on_sync(self, failure: StorageWriteError | None) -> None:
        self.error = failure
        self._finish()

    def _finish(self) -> None:
        shape, correlation_id, partition, _, _ = self._request
        log, result = self._log, self.result
        if shape.acks == ACKS_NONE:
            if self.error is not None:
                # Nobody reads an answer; a closed connection is how Kafka tells.
                self._connection.close()
            return
        if self.error is None and result is not None and log is not None:
            frame = shape.write_success(
                correlation_id,
                partition,
                result.base_offset,
                result.log_append_time,
                log.log_start_offset,
            )
        else:
            entry = _Entry(partition, log, None, self.error)
            frame = produce.write_response(
                shape.version, correlation_id, [(shape.topic, [result_of(entry)])]
            )
        self.pieces = (frame,)
        self._connection.complete(self)


class PendingProduce(Answer):
    """A request whose batches are staged, then written, then perhaps synced."""

    __slots__ = ("_acks", "_connection", "_correlation_id", "_handler",
        "_must_sync", "_syncs_left",
                 "_topics", "_version")  # fmt: skip

    def __init__(
        self,
        handler: "ProduceHandler",
        connection: "Connection",
        correlation_id: int,
        version: int,
        acks: int,
        topics: list[tuple[bytes, list[_Entry]]],
    ) -> None:
        self.is_ready = False
        self.pieces = ()
        self._handler = handler
        self._connection = connection
        self._correlation_id = correlation_id
        self._version = version
        self._acks = acks
        self._topics = topics
        self._syncs_left = 0
        self._must_sync = handler.take_sync_duty(acks)

    def on_commit(self, failures: Failures) -> None:
        """The batches are in their files, except in the logs that failed."""
        self._connection.has_staged_views = False
        if failures:
            self._mark(failures)
        if self._must_sync:
            self._wait_for_disk()
        else:
            self._finish()

    def _mark(self, failures: Failures) -> None:
        for _, entries in self._topics:
            for at, entry in enumerate(entries):
                if entry.error is None and entry.log in failures:
                    entries[at] = _Entry(entry.partition, entry.log, None, failures[entry.log])

    def _wait_for_disk(self) -> None:
        waiting = [
            entry.log
            for _, entries in self._topics
            for entry in entries
            if entry.log is not None
            and entry.result is not None
            and entry.result.last_offset >= entry.log.recovery_point
        ]
        self._syncs_left = len(waiting)
        if not waiting:
            self._finish()
        for log in waiting:
            self._handler.sync.wait(log, self._on_sync)

    def _on_sync(self, failure: StorageWriteError | None) -> None:
        if failure is not None:
            self._mark({log: error for log, error in self._handler.sync.failed.items()})
        self._syncs_left -= 1
        if not self._syncs_left:
            self._finish()

    def _finish(self) -> None:
        if self._acks == ACKS_NONE:
            if any(entry.error for _, entries in self._topics for entry in entries):
                # Nobody reads an answer; a closed connection is how Kafka tells.
                self._connection.close()
            return
        topics = [
            (topic, [result_of(entry) for entry in entries]) for topic, entries in self._topics
        ]
        self.pieces = (produce.write_response(self._version, self._correlation_id, topics),)
        self._connection.complete(self)


class ProduceHandler:
    """Finds logs, checks and stages batches. Event-loop thread only."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._broker = service.broker
        self._finder = service.finder
        self._metrics = service.metrics
        self._committer = service.committer
        self.sync = service.sync
        self._is_flush_due = False
        self._is_sync_required = service.broker.settings.bool("headrace.acks.all.sync")

    def handle_shaped(self, connection: "Connection", request: ShapedRequest) -> None:
        """Serve a request that has the shape of an earlier one."""
        self._metrics.requests[0] += 1
        pending = ShapedProduce(self, connection, request)
        if request.shape.acks != ACKS_NONE:
            connection.reserve(pending)
        self._committer.add(pending)

    def stage_shaped(
        self, connection: "Connection", request: ShapedRequest
    ) -> tuple[PartitionLog | None, AppendResult | None, HeadraceError | None]:
        """Stage the batch of a shaped request; tell its log, its place, or why it has none."""
        shape, _, partition, start, end = request
        _, log, result, error, _ = self._stage(
            connection, shape.topic, partition, connection.view[start:end], shape.version
        )
        return log, result, error

    def handle(
        self,
        connection: "Connection",
        view: memoryview,
        start: int,
        end: int,
        header: RequestHeader,
    ) -> None:
        """Serve any request, and remember its shape."""
        version = header.api_version
        if version < FIRST_SERVED:
            raise WireError(f"Produce v{version} is not served")
        request = produce.read_request(view, header.body, end, version)
        topics = [
            (
                topic,
                [self._entry(connection, request, version, topic, span, view) for span in spans],
            )
            for topic, spans in request.topics
        ]
        pending = PendingProduce(
            self, connection, header.correlation_id, version, request.acks, topics
        )
        if request.acks != ACKS_NONE:
            connection.reserve(pending)
        self._committer.add(pending)
        if request.acks in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            connection.shapes.learn(view, start, end, version, request)

    def _entry(
        self,
        connection: "Connection",
        request: produce.ProduceRequest,
        version: int,
        topic: bytes,
        span: produce.PartitionSpan,
        view: memoryview,
    ) -> _Entry:
        if request.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            return _Entry(span.partition, None, None, None, ErrorCode.invalid_required_acks)
        if span.start < 0 or span.start == span.end:
            error = InvalidRecordError("a partition must come with one record batch")
            return _Entry(span.partition, None, None, error)
        return self._stage(connection, topic, span.partition, view[span.start : span.end], version)

    def _stage(
        self,
        connection: "Connection",
        topic: bytes,
        partition: int,
        batch: memoryview,
        version: int,
    ) -> _Entry:
        log: PartitionLog | None = None
        try:
            log = self._log(topic, partition, version)
            config = log.config
            header = check_for_append(
                batch,
                max_message_bytes=config.max_message_bytes,
                needs_keys=config.is_compacted,
            )
            if header.attributes & TRANSACTIONAL_BIT:
                raise UnexpectedTransactionError("the batch is in no transaction known here")
            result = log.stage(batch, header, self._broker.now_ms())
        except HeadraceError as error:
            if isinstance(error, InvalidTimestampError):
                error.record_index = _first_outside(batch, error)
            self._metrics.count_error(0, code_for(error))
            # Its frames hold the batch and what was decompressed of it; the answer does not
            # need them, and the collector runs rarely.
            error.__traceback__ = error.__context__ = None
            return _Entry(partition, log, None, error)
        if not result.is_duplicate:
            self._committer.stage(log, len(batch))
            connection.has_staged_views = True
            unsynced = result.last_offset + 1 - log.recovery_point
            if unsynced >= config.flush_messages:
                self._is_flush_due = True
            metrics = self._metrics
            metrics.messages_in.value += header.record_count
            metrics.batches_in.value += 1
            metrics.batch_bytes_in.value += len(batch)
        return _Entry(partition, log, result, None)

    def _log(self, topic: bytes, partition: int, version: int) -> PartitionLog:
        log = self._finder.find(topic, partition, version >= produce.TOPIC_IDS_FROM)
        if self.sync.failed and log in self.sync.failed:
            raise self.sync.failed[log]
        return log

    def take_sync_duty(self, acks: int) -> bool:
        """Whether the request just staged must be on disk before it is acknowledged."""
        is_flush_due, self._is_flush_due = self._is_flush_due, False
        return is_flush_due or (acks == ACKS_ALL and self._is_sync_required)


def result_of(entry: _Entry) -> PartitionResult:
    """What to tell the client about one partition."""
    error, log = entry.error, entry.log
    log_start_offset = -1 if log is None else log.log_start_offset
    if error is not None:
        return PartitionResult(
            entry.partition,
            code_for(error),
            log_start_offset=log_start_offset,
            error_message=str(error),
            record_index=getattr(error, "record_index", -1),
        )
    if entry.result is None:
        return PartitionResult(entry.partition, entry.code)
    result = entry.result
    return PartitionResult(
        entry.partition, 0, result.base_offset, result.log_append_time, log_start_offset
    )


def _first_outside(batch: memoryview, error: InvalidTimestampError) -> int:
    """Which record of a refused batch has the wrong timestamp."""
    for index, record in enumerate(iter_records(batch)):
        if not error.earliest <= record.timestamp <= error.latest:
            return index
    return -1
