"""Finds what a fetch asks for: partitions become ranges of files, or an error each.

The first partition that has data gives at least one whole batch, whatever the limits say
(KIP-74); the others only what fits.
"""

import logging
from collections.abc import Generator, Iterable
from pathlib import Path
from time import perf_counter

from kio.schema.errors import ErrorCode

from headrace.broker.error_codes import code_for
from headrace.broker.errors import TopicError
from headrace.broker.fetch_answers import FetchedPartition, FetchedPartitions
from headrace.broker.fetch_sessions import Watched
from headrace.broker.leader_epoch import check_leader_epoch
from headrace.broker.log_finder import LogFinder
from headrace.errors import HeadraceError
from headrace.log.access import BLOCKING, RESIDENT, Access, NotReadyError
from headrace.log.errors import CorruptBatchError, OffsetOutOfRangeError
from headrace.log.partition_log import FileSlice, PartitionLog
from headrace.log.verifying import Preparation, prepare
from headrace.metrics import Metrics
from headrace.protocol.fetch import PartitionHead

_log = logging.getLogger(__name__)

# A fetch makes a step when it has taken this long.
STEP_SECONDS = 0.002
# A read that is still not ready then (its pages or its index are lost again and again) waits.
MAX_PREPARATIONS = 20
_UNKNOWN = -1

# None: others may have the loop. A preparation: this must be done by a thread first.
Steps = Generator[Preparation | None, None, None]


class FetchReader:
    """Finds logs and file ranges. Event-loop thread only."""

    def __init__(self, finder: LogFinder, metrics: Metrics) -> None:
        self._finder = finder
        self._metrics = metrics
        self._reported: set[tuple[Path, int]] = set()

    def read(
        self, watched: Iterable[Watched], has_ids: bool, allowed: int, fetched: FetchedPartitions
    ) -> Steps:
        """Look at every partition, for `allowed` bytes of all of them, and add it to `fetched`."""
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
                self._look(one, has_ids, allowed, fetched, RESIDENT)
            except NotReadyError as error:
                yield from self._look_patiently(one, has_ids, allowed, fetched, error)
                step_ends = perf_counter() + STEP_SECONDS

    def _look_patiently(
        self,
        one: Watched,
        has_ids: bool,
        allowed: int,
        fetched: FetchedPartitions,
        not_ready: NotReadyError,
    ) -> Steps:
        for _ in range(MAX_PREPARATIONS):
            try:
                yield prepare(not_ready.need)
            except OSError:
                self._add_failed(one, ErrorCode.kafka_storage_error, fetched)
                return
            try:
                self._look(one, has_ids, allowed, fetched, RESIDENT)
            except NotReadyError as error:
                not_ready = error
            else:
                return
        self._look(one, has_ids, allowed, fetched, BLOCKING)

    def _look(
        self, one: Watched, has_ids: bool, allowed: int, fetched: FetchedPartitions, access: Access
    ) -> None:
        try:
            log = self._finder.find(one.topic, one.partition, has_ids)
            if epoch_code := check_leader_epoch(log, one.leader_epoch):
                self._add_failed(one, epoch_code, fetched)
                return
            left = allowed - fetched.byte_count
            slices = self._read_log(log, one, left, access, is_first=not fetched.byte_count)
        except TopicError as error:
            # As in Kafka, what is not there does not keep the rest from waiting.
            fetched.add(self._failed(one, code_for(error), error))
            return
        except HeadraceError as error:
            self._add_failed(one, code_for(error), fetched, error)
            return
        except OSError:
            self._add_failed(one, ErrorCode.kafka_storage_error, fetched)
            return
        end = log.log_end_offset
        head = PartitionHead(one.partition, 0, end, end, log.log_start_offset)
        byte_count = sum([piece.length for piece in slices]) if slices else 0
        found = FetchedPartition(one, head, slices, byte_count)
        fetched.logs[log] = found
        fetched.add(found)

    def _read_log(
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
        self,
        one: Watched,
        code: ErrorCode,
        fetched: FetchedPartitions,
        error: HeadraceError | None = None,
    ) -> None:
        fetched.has_error = True
        fetched.add(self._failed(one, code, error))

    def _failed(
        self, one: Watched, code: ErrorCode, error: HeadraceError | None = None
    ) -> FetchedPartition:
        metrics = self._metrics
        metrics.count_error(1, code)
        start = end = _UNKNOWN
        if isinstance(error, CorruptBatchError):
            metrics.corrupt_reads.value += 1
            self._report_damage(error)
        elif isinstance(error, OffsetOutOfRangeError):
            start, end = error.start, error.end
        head = PartitionHead(one.partition, code, end, end, start)
        return FetchedPartition(one, head, [], 0)

    def _report_damage(self, error: CorruptBatchError) -> None:
        place = (error.path, error.position)
        if place not in self._reported:
            self._reported.add(place)
            _log.error("damaged batch, not served: %s", error)
