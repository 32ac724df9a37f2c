"""Produce (0), v3-13: check, stage, let the committer write, acknowledge.

v13  topics by id; an unknown one is error 100

Versions 0-2 are advertised but not served (see `dispatch`).
"""

from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from headrace.broker.durability import DiskSync
from headrace.broker.error_codes import code_for
from headrace.broker.log_finder import LogFinder
from headrace.broker.produce_answers import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    Entry,
    PendingProduce,
    ShapedProduce,
)
from headrace.broker.receive_buffer import ReceiveBuffer
from headrace.errors import (
    HeadraceError,
    InvalidRecordError,
    UnexpectedTransactionError,
    WireError,
)
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.protocol import produce
from headrace.protocol.headers import RequestHeader
from headrace.protocol.produce_shape import ShapedRequest
from headrace.records.batch import TRANSACTIONAL_BIT
from headrace.records.validation import check_for_append

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.service import Service

VERSIONS = range(0, 14)
FIRST_SERVED = 3


class ProduceHandler:
    """Finds logs, checks and stages batches. Event-loop thread only."""

    def __init__(self, service: "Service") -> None:
        self._broker = service.broker
        self._find = LogFinder(service.broker.topics, is_for_append=True).find
        self._metrics = service.metrics
        self._committer = service.committer
        self._sync = service.sync
        self._is_flush_due = False
        self._is_sync_required = service.broker.settings.bool("headrace.acks.all.sync")

    def handle_shaped(
        self, connection: "Connection", request: ShapedRequest, view: memoryview, now_ms: int
    ) -> None:
        """Serve a request that has the shape of an earlier one."""
        shape, correlation_id, partition, start, end = request
        self._metrics.requests[0] += 1
        pending = ShapedProduce(connection, shape, correlation_id, partition)
        batch = view[start:end]
        try:
            log = pending.log = self._find(
                shape.topic, partition, shape.version >= produce.TOPIC_IDS_FROM
            )
            pending.result = self._stage(connection, log, batch, now_ms, shape.version)
        except HeadraceError as error:
            pending.error = self._refused(error)
        acks = shape.acks
        if acks == ACKS_ALL or self._is_flush_due:
            pending.sync = self._take_sync_duty(acks)
        if acks:
            connection.reserve(pending)
        self._committer.add(pending)

    def handle(
        self,
        connection: "Connection",
        buffer: ReceiveBuffer,
        start: int,
        end: int,
        header: RequestHeader,
    ) -> None:
        """Serve any request, and remember its shape."""
        version = header.api_version
        if version < FIRST_SERVED:
            raise WireError(f"Produce v{version} is not served")
        request = produce.read_request(buffer.data, header.body, end, version)
        acks = request.acks
        topics = [
            (
                topic,
                [
                    self._entry(connection, acks, version, topic, span, buffer.view)
                    for span in spans
                ],
            )
            for topic, spans in request.topics
        ]
        sync = self._take_sync_duty(acks)
        pending = PendingProduce(connection, header.correlation_id, version, acks, topics, sync)
        if acks != ACKS_NONE:
            connection.reserve(pending)
        self._committer.add(pending)
        if acks in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            connection.shapes.learn(buffer.data, start, end, version, request)

    def _entry(
        self,
        connection: "Connection",
        acks: int,
        version: int,
        topic: bytes,
        span: produce.PartitionSpan,
        view: memoryview,
    ) -> Entry:
        partition = span.partition
        if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            return Entry(partition, None, None, None, ErrorCode.invalid_required_acks)
        if span.start < 0 or span.start == span.end:
            error = InvalidRecordError("a partition must come with one record batch")
            return Entry(partition, None, None, error)
        log: PartitionLog | None = None
        batch = view[span.start : span.end]
        try:
            log = self._find(topic, partition, version >= produce.TOPIC_IDS_FROM)
            result = self._stage(connection, log, batch, self._broker.now_ms(), version)
        except HeadraceError as refusal:
            return Entry(partition, log, None, self._refused(refusal))
        return Entry(partition, log, result, None)

    def _stage(
        self,
        connection: "Connection",
        log: PartitionLog,
        batch: memoryview,
        now_ms: int,
        version: int,
    ) -> AppendResult:
        if self._sync.failed and log in self._sync.failed:
            raise self._sync.failed[log]
        config = log.config
        header = check_for_append(batch, config, now_ms, version >= produce.ZSTD_FROM)
        if header.attributes & TRANSACTIONAL_BIT:
            raise UnexpectedTransactionError("the batch is in no transaction known here")
        result = log.stage(batch, header, now_ms)
        if not result.is_duplicate:
            size = len(batch)
            self._committer.stage(log, size)
            connection.has_staged_views = True
            if result.last_offset >= log.recovery_point + config.flush_messages - 1:
                self._is_flush_due = True
            metrics = self._metrics
            metrics.messages_in.value += header.record_count
            metrics.batches_in.value += 1
            metrics.batch_bytes_in.value += size
        return result

    def _refused(self, error: HeadraceError) -> HeadraceError:
        self._metrics.count_error(0, code_for(error))
        # Its frames hold the batch and what was decompressed of it; the answer does not
        # need them, and the collector runs rarely.
        error.__traceback__ = error.__context__ = None
        return error

    def _take_sync_duty(self, acks: int) -> DiskSync | None:
        """What must sync the request just staged before it is acknowledged, if anything must."""
        is_flush_due, self._is_flush_due = self._is_flush_due, False
        is_due = is_flush_due or (acks == ACKS_ALL and self._is_sync_required)
        return self._sync if is_due else None
