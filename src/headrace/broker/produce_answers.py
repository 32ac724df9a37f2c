"""Produce requests on their way: staged, then written, then perhaps synced, then answered."""

from typing import NamedTuple

from headrace.broker.answers import Channel, QueuedAnswer
from headrace.broker.committer import Failures
from headrace.broker.durability import DiskSync
from headrace.broker.error_codes import code_for
from headrace.broker.turns import Turn
from headrace.errors import HeadraceError
from headrace.log.errors import StorageWriteError
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.protocol import produce
from headrace.protocol.produce import PartitionResult
from headrace.protocol.produce_shape import ProduceShape

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1


class ProduceEntry(NamedTuple):
    """One partition of a request: where its batch went, or why not."""

    partition: int
    log: PartitionLog | None
    result: AppendResult | None
    error: HeadraceError | None
    code: int = 0


def result_of(entry: ProduceEntry) -> PartitionResult:
    """What to tell the client about one partition."""
    error, log = entry.error, entry.log
    log_start_offset = -1 if log is None else log.log_start_offset
    if error is not None:
        return PartitionResult(
            entry.partition,
            code_for(error),
            log_start_offset=log_start_offset,
            error_message=str(error),
            record_errors=getattr(error, "record_errors", ()),
        )
    if entry.result is None:
        return PartitionResult(entry.partition, entry.code)
    result = entry.result
    return PartitionResult(
        entry.partition, 0, result.base_offset, result.log_append_time, log_start_offset
    )


class ShapedProduce(QueuedAnswer):
    """The common case: one batch for one partition, in a request like those before it."""

    __slots__ = ("_connection", "_correlation_id", "_partition", "_shape", "error", "log", "result",
                 "sync")  # fmt: skip

    def __init__(
        self,
        connection: Channel,
        shape: ProduceShape,
        correlation_id: int,
        partition: int,
    ) -> None:
        self.is_ready = False
        self.pieces = ()
        self._connection = connection
        self._shape = shape
        self._correlation_id = correlation_id
        self._partition = partition
        self.log: PartitionLog | None = None
        self.result: AppendResult | None = None
        self.error: HeadraceError | None = None
        self.sync: DiskSync | None = None  # what must have synced the log before the answer

    def on_commit(self, failures: Failures) -> None:
        """The batch is in its file, unless its log failed."""
        connection = self._connection
        log, result = self.log, self.result
        if log is None or result is None or self.error is not None:
            self._refuse()
            return
        if failures and log in failures:
            self.error = failures[log]
            self._refuse()
            return
        if self.sync is not None and result.last_offset >= log.recovery_point:
            self.sync.wait(log, self._on_sync)
            return
        shape = self._shape
        if shape.acks:
            self.pieces = (
                shape.write_success(
                    self._correlation_id,
                    self._partition,
                    result.base_offset,
                    result.log_append_time,
                    log.log_start_offset,
                ),
            )
            connection.complete(self)

    def _on_sync(self, failure: StorageWriteError | None) -> None:
        self.error = failure
        self.sync = None
        self.on_commit({})

    def _refuse(self) -> None:
        shape = self._shape
        if shape.acks == ACKS_NONE:
            # Nobody reads an answer; a closed connection is how Kafka tells.
            self._connection.close()
            return
        entry = ProduceEntry(self._partition, self.log, None, self.error)
        topics = [(shape.topic, [result_of(entry)])]
        self.pieces = (produce.write_response(shape.version, self._correlation_id, topics),)
        self._connection.complete(self)


class ProducePart:
    """Some batches of a request that is served in parts: it hears which of them were not written.

    Each is named by the list its entry stands in and its place there.
    """

    __slots__ = ("_places", "byte_count")

    def __init__(self) -> None:
        self._places: list[tuple[list[ProduceEntry], int]] = []
        self.byte_count = 0

    @property
    def is_empty(self) -> bool:
        """Nothing waits to be written."""
        return not self._places

    def add(self, entries: list[ProduceEntry], byte_count: int) -> None:
        """Count the last of `entries` in, if its batch was staged."""
        if entries[-1].result is not None:
            self._places.append((entries, len(entries) - 1))
            self.byte_count += byte_count

    def on_commit(self, failures: Failures) -> None:
        """The batches are in their files, except in the logs that failed."""
        for entries, at in self._places:
            _mark(entries, at, failures)


def _mark(entries: list[ProduceEntry], at: int, failures: Failures) -> None:
    entry = entries[at]
    if entry.error is None and entry.log in failures:
        entries[at] = ProduceEntry(entry.partition, entry.log, None, failures[entry.log])


def _unless_lost(entry: ProduceEntry) -> ProduceEntry:
    """The entry, or its failure when a sync of its log failed before it covered the batch."""
    log, result = entry.log, entry.result
    if log is None or result is None or log.sync_failure is None:
        return entry
    if result.last_offset < log.recovery_point:
        return entry
    return ProduceEntry(entry.partition, log, None, log.sync_failure)


class PendingProduce(QueuedAnswer):
    """The general case: any number of partitions."""

    __slots__ = ("_connection", "_correlation_id", "_syncs_left", "acks", "sync", "topics",
                 "version")  # fmt: skip

    def __init__(
        self,
        connection: Channel,
        correlation_id: int,
        version: int,
        acks: int,
        topics: list[tuple[bytes, list[ProduceEntry]]],
    ) -> None:
        self.is_ready = False
        self.pieces = ()
        self._connection = connection
        self._correlation_id = correlation_id
        self._syncs_left = 0
        self.version = version
        self.acks = acks
        self.topics = topics
        self.sync: DiskSync | None = None  # what must have synced the logs before the answer

    def on_commit(self, failures: Failures) -> None:
        """The batches are in their files, except in the logs that failed."""
        if failures:
            for _, entries in self.topics:
                for at in range(len(entries)):
                    _mark(entries, at, failures)
        self.on_written()

    def on_written(self) -> None:
        """All that could be written is: answer, or let the disk have it first."""
        if self.sync is None:
            self._finish()
            return
        waiting = [
            entry
            for _, entries in self.topics
            for entry in entries
            if entry.result is not None
            and entry.log is not None
            and entry.result.last_offset >= entry.log.recovery_point
        ]
        self._syncs_left = len(waiting)
        if not waiting:
            self._finish()
        for log in [entry.log for entry in waiting]:
            assert log is not None
            self.sync.wait(log, self._on_sync)

    def _on_sync(self, failure: StorageWriteError | None) -> None:
        self._syncs_left -= 1
        if not self._syncs_left:
            self._finish()

    async def finish_in_slices(self, turn: Turn) -> None:
        """As `on_written`, of a request that was served in parts."""
        if self.sync is not None:
            self._syncs_left = 1  # this one: nothing is finished before all are waited for
            for _, entries in self.topics:
                for entry in entries:
                    log, result = entry.log, entry.result
                    if log and result and result.last_offset >= log.recovery_point:
                        self._syncs_left += 1
                        self.sync.wait(log, self._on_sync)
                    if turn.is_over:
                        await turn.breathe()
            self._on_sync(None)
        else:
            self._finish()

    def _finish(self) -> None:
        if self.sync is not None:
            for _, entries in self.topics:
                entries[:] = [_unless_lost(entry) for entry in entries]
        if self.acks == ACKS_NONE:
            if any(entry.error for _, entries in self.topics for entry in entries):
                self._connection.close()
            return
        topics = [(topic, [result_of(one) for one in entries]) for topic, entries in self.topics]
        self.pieces = (produce.write_response(self.version, self._correlation_id, topics),)
        self._connection.complete(self)
