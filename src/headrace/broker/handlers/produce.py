"""Produce (0): check, stage, let the committer write, acknowledge.

v13  topics by id; an unknown one is error 100

Versions 0-2 are advertised but not served (see `dispatch`).
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from kio.schema.errors import ErrorCode

from headrace.broker.answers import Channel
from headrace.broker.batch_checks import BatchChecks
from headrace.broker.committer import Committer
from headrace.broker.durability import DiskSync
from headrace.broker.error_codes import code_for
from headrace.broker.errors import UnexpectedTransactionError
from headrace.broker.log_finder import LogFinder
from headrace.broker.produce_answers import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    PendingProduce,
    ProduceEntry,
    ProducePart,
    ShapedProduce,
)
from headrace.broker.receive_buffer import Block, ReceiveBuffer
from headrace.broker.state import BrokerState
from headrace.broker.turns import Turn
from headrace.errors import HeadraceError
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.metrics import Metrics
from headrace.protocol import produce
from headrace.protocol.errors import WireError
from headrace.protocol.headers import RequestHeader
from headrace.protocol.produce import PartitionSpan
from headrace.protocol.produce_shape import ShapedRequest
from headrace.records.batch import TRANSACTIONAL_BIT, BatchHeader
from headrace.records.codecs import Allowance
from headrace.records.errors import InvalidRecordError

_log = logging.getLogger(__name__)

FIRST_SERVED = 3
# A larger request is checked and written in parts of about this size: a few milliseconds each.
MAX_AT_ONCE_BYTES = 2 * 1024 * 1024
# So is one for more partitions: each may be used for the first time, and its log be made.
MAX_AT_ONCE_PARTITIONS = 32


class _Checked:
    """One partition of a request before it is staged: its batch, its log, what the check said."""

    __slots__ = ("batch", "code", "error", "header", "log", "partition")

    def __init__(self, partition: int, batch: memoryview) -> None:
        self.partition, self.batch = partition, batch
        self.log: PartitionLog | None = None
        self.header: BatchHeader | None = None
        self.error: HeadraceError | None = None
        self.code = 0


class ProduceHandler:
    """Finds logs, checks and stages batches. Event-loop thread only."""

    def __init__(
        self,
        broker: BrokerState,
        metrics: Metrics,
        *,
        committer: Committer,
        checks: BatchChecks,
        sync: DiskSync,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._broker = broker
        self._find = LogFinder(broker.topics, is_for_append=True).find
        self._metrics = metrics
        self._committer = committer
        self._checks = checks
        self._sync = sync
        self._spawn = spawn
        self._is_flush_due = False
        self._is_sync_required = broker.settings.bool("headrace.acks.all.sync")

    def handle_shaped(
        self, connection: Channel, request: ShapedRequest, block: Block, now_ms: int
    ) -> None:
        """Serve a request that has the shape of an earlier one."""
        shape, correlation_id, partition, start, end = request
        self._metrics.requests[0] += 1
        pending = ShapedProduce(connection, shape, correlation_id, partition)
        batch = block.view[start:end]
        try:
            log = pending.log = self._find(
                shape.topic, partition, shape.version >= produce.TOPIC_IDS_FROM
            )
            takes_zstd = shape.version >= produce.ZSTD_FROM
            header = self._checks.now(batch, log.config, now_ms, takes_zstd)
            if header is None:
                topics = [(shape.topic, [PartitionSpan(partition, start, end)])]
                self._serve_aside(
                    connection, block, correlation_id, shape.version, shape.acks, topics
                )
                return
            pending.result = self._stage(log, batch, header, block, now_ms)
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
        connection: Channel,
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
        if acks in (ACKS_NONE, ACKS_LEADER, ACKS_ALL) and not buffer.block.is_large:
            connection.shapes.learn(buffer.data, start, end, version, request)
        block = buffer.block
        checked = None
        partition_count = sum([len(spans) for _, spans in request.topics])
        if end - start <= MAX_AT_ONCE_BYTES and partition_count <= MAX_AT_ONCE_PARTITIONS:
            checked = self._check_now(block, version, acks, request.topics)
        if checked is None:
            self._serve_aside(
                connection, block, header.correlation_id, version, acks, request.topics
            )
            return
        now_ms = self._broker.now_ms()
        topics = [
            (topic, [self._entry(one, block, now_ms) for one in partitions])
            for topic, partitions in checked
        ]
        pending = PendingProduce(connection, header.correlation_id, version, acks, topics)
        pending.sync = self._take_sync_duty(acks)
        if acks != ACKS_NONE:
            connection.reserve(pending)
        self._committer.add(pending)

    def _check_now(
        self,
        block: Block,
        version: int,
        acks: int,
        topics: list[tuple[bytes, list[PartitionSpan]]],
    ) -> list[tuple[bytes, list[_Checked]]] | None:
        """Check all batches of a request; None when one of them must be checked aside."""
        checked: list[tuple[bytes, list[_Checked]]] = []
        now_ms, takes_zstd = self._broker.now_ms(), version >= produce.ZSTD_FROM
        for topic, spans in topics:
            ones = []
            for span in spans:
                one = self._find_log(acks, version, topic, span, block.view)
                if one.log is not None:
                    try:
                        one.header = self._checks.now(one.batch, one.log.config, now_ms, takes_zstd)
                    except HeadraceError as error:
                        one.error = error
                    else:
                        if one.header is None:
                            return None
                ones.append(one)
            checked.append((topic, ones))
        return checked

    def _find_log(
        self, acks: int, version: int, topic: bytes, span: PartitionSpan, view: memoryview
    ) -> _Checked:
        one = _Checked(span.partition, view[max(0, span.start) : span.end])
        if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            one.code = ErrorCode.invalid_required_acks
        elif span.start < 0 or span.start == span.end:
            one.error = InvalidRecordError("a partition must come with one record batch")
        else:
            try:
                one.log = self._find(topic, span.partition, version >= produce.TOPIC_IDS_FROM)
            except HeadraceError as error:
                one.error = error
        return one

    def _entry(self, one: _Checked, block: Block, now_ms: int) -> ProduceEntry:
        """Stage one partition's batch, if it may be."""
        error, log = one.error, one.log
        if error is None and log is not None and one.header is not None:
            try:
                result = self._stage(log, one.batch, one.header, block, now_ms)
                return ProduceEntry(one.partition, log, result, None)
            except HeadraceError as refusal:
                error = refusal
        if error is None:
            return ProduceEntry(one.partition, None, None, None, one.code)
        return ProduceEntry(one.partition, log, None, self._refused(error))

    # --- requests that take long: the connection is held, others are served in between

    def _serve_aside(
        self,
        connection: Channel,
        block: Block,
        correlation_id: int,
        version: int,
        acks: int,
        topics: list[tuple[bytes, list[PartitionSpan]]],
    ) -> None:
        pending = PendingProduce(connection, correlation_id, version, acks, [])
        if acks != ACKS_NONE:
            connection.reserve(pending)
        connection.hold()
        block.loans += 1
        self._spawn(self._serve_in_parts(connection, block, pending, topics))

    async def _serve_in_parts(
        self,
        connection: Channel,
        block: Block,
        pending: PendingProduce,
        topics: list[tuple[bytes, list[PartitionSpan]]],
    ) -> None:
        turn = Turn()
        allowance = Allowance()
        acks, version = pending.acks, pending.version
        takes_zstd = version >= produce.ZSTD_FROM
        part = ProducePart()
        try:
            for topic, spans in topics:
                entries: list[ProduceEntry] = []
                pending.topics.append((topic, entries))
                for span in spans:
                    one = self._find_log(acks, version, topic, span, block.view)
                    if one.log is not None:
                        config, now_ms = one.log.config, self._broker.now_ms()
                        try:
                            header = self._checks.now(one.batch, config, now_ms, takes_zstd)
                            if header is None:
                                part = self._write(part)  # nothing is staged while this waits
                                header = await self._checks.aside(
                                    one.batch, config, now_ms, takes_zstd, allowance
                                )
                                # The topic may have gone meanwhile.
                                one = self._find_log(acks, version, topic, span, block.view)
                            one.header = header
                        except HeadraceError as error:
                            one.error = error
                    entries.append(self._entry(one, block, self._broker.now_ms()))
                    part.add(entries, len(one.batch))
                    pending.sync = self._take_sync_duty(acks) or pending.sync
                    if turn.is_over or part.byte_count >= MAX_AT_ONCE_BYTES:
                        part = self._write(part)
                        await turn.breathe()
            self._write(part)
            await pending.finish_in_slices(turn)
        except Exception:
            _log.exception("request failed; closing", extra={"peer": connection.peer})
            self._committer.flush()
            connection.close()
        finally:
            block.loans -= 1
            connection.go_on()

    def _write(self, part: ProducePart) -> ProducePart:
        """Write what is staged of a request, so that others may be served; a part for the rest."""
        if part.is_empty:
            return part
        self._committer.add(part)
        self._committer.flush()
        return ProducePart()

    def _stage(
        self,
        log: PartitionLog,
        batch: memoryview,
        header: BatchHeader,
        block: Block,
        now_ms: int,
    ) -> AppendResult:
        if log.sync_failure is not None:
            raise log.sync_failure
        if header.attributes & TRANSACTIONAL_BIT:
            raise UnexpectedTransactionError("the batch is in no transaction known here")
        result = log.stage(batch, header, now_ms)
        if not result.is_duplicate:
            size = len(batch)
            self._committer.stage(log, size, block)
            if result.last_offset >= log.recovery_point + log.config.flush_messages - 1:
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
