"""Bring producer state to an offset: the latest snapshot, then the batches behind it."""

import time
from collections.abc import Sequence
from contextlib import suppress

from headrace.log.errors import CorruptBatchError
from headrace.log.producer_snapshot import ProducerSnapshots
from headrace.log.producer_state import ProducerStates
from headrace.log.scanner import Visit, scan_file
from headrace.log.segment import Segment
from headrace.log.segment_check import locate
from headrace.records.batch import CONTROL_BIT, LENGTH_PREFIX_SIZE, Buffer
from headrace.records.errors import RecordError
from headrace.records.record import decode_control, iter_records


def load_producers(
    snapshots: ProducerSnapshots,
    segments: Sequence[Segment],
    offset: int,
    now_ms: int,
    repairs: list[str],
) -> ProducerStates:
    """The producers' state at `offset`.

    Producers found in the log count as heard of at `now_ms`.
    """
    snapshot = snapshots.load(offset, repairs)
    start, entries = snapshot if snapshot is not None else (segments[0].base_offset, {})
    producers = ProducerStates(entries)
    visit = replaying(producers, offset, now_ms)
    for segment in segments:
        if segment.end_offset <= start or segment.base_offset >= offset or not segment.size:
            continue
        position = 0
        if segment.base_offset < start:
            # Damage at the snapshot's offset: replaying the whole segment does no harm,
            # for a batch taken in twice is only remembered twice.
            with suppress(CorruptBatchError):
                position = locate(segment, start)
        fd = segment.file.get().fd
        scan_file(fd, position, segment.size, segment.base_offset, visit)
    return producers


def forget_silent(producers: ProducerStates, now_ms: int, expiration_ms: int) -> None:
    """Forget who was not heard of for `expiration_ms`, however the wall clock was set."""
    producers.expire(now_ms, expiration_ms, time.monotonic_ns() // 1_000_000)


def replaying(producers: ProducerStates, end_offset: int, now_ms: int) -> Visit:
    """A visitor that takes every batch below `end_offset` into `producers`."""

    def visit(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
        if fields[9] < 0 or fields[0] >= end_offset:
            return
        coordinator_epoch = None
        if fields[5] & CONTROL_BIT:
            batch = memoryview(buffer)[at : at + fields[1] + LENGTH_PREFIX_SIZE]
            with suppress(RecordError):
                for record in iter_records(batch):
                    coordinator_epoch = decode_control(record).coordinator_epoch
        producers.replay(fields, coordinator_epoch, now_ms)

    return visit
