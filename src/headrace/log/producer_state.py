"""What a partition remembers of each idempotent producer: its last five batches.

Pure: no I/O, no clock. Entries are immutable; a change is one dictionary assignment and
one line in an undo list, so that staged batches count at once and can be taken back.
A producer is forgotten when the broker has not heard of it for long; what timestamps its
records have does not matter, nor whether the wall clock was set meanwhile.
"""

from typing import NamedTuple

from headrace.log.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from headrace.records.batch import (
    CONTROL_BIT,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
)

REMEMBERED_BATCHES = 5  # Kafka's bound, and the most a producer may have in flight
NO_OFFSET = -1
# Two clocks this far apart were not drifting: one was set.
_CLOCK_WAS_SET_MS = 10_000


class ProducerBatch(NamedTuple):
    """One batch a producer wrote; `timestamp` is its largest, -1 when only the log knows it."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class ProducerEntry(NamedTuple):
    """One producer; `batches` are oldest first.

    `last_append_ms`: when the broker took its last batch, by the broker's wall clock.
    `is_partial`: it came from a snapshot, which holds only the last batch, so the log
    may know more of this producer than the entry does.
    """

    epoch: int
    batches: tuple[ProducerBatch, ...]
    last_append_ms: int
    coordinator_epoch: int = -1
    txn_first_offset: int = NO_OFFSET
    is_partial: bool = False

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerStates:
    """All producers of one partition."""

    __slots__ = ("_ahead_ms", "entries", "undo_log")

    def __init__(self, entries: dict[int, ProducerEntry] | None = None) -> None:
        self.entries: dict[int, ProducerEntry] = entries if entries is not None else {}
        # What each staged batch replaced, oldest first. Who has written the batches clears it.
        self.undo_log: list[tuple[int, ProducerEntry | None]] = []
        # How far the wall clock was ahead of the steady one when `expire` last looked.
        self._ahead_ms: int | None = None

    def check(
        self, producer_id: int, epoch: int, base_sequence: int, offset_delta: int
    ) -> ProducerBatch | None:
        """None when the batch is next in line; the original when it is a duplicate."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return None  # nothing is known (expired, or deleted with its data): any start is right
        if epoch != entry.epoch:
            if epoch < entry.epoch:
                raise InvalidProducerEpochError(producer_id, epoch, entry.epoch)
            if base_sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequenceError(producer_id, base_sequence, 0)
            return None
        expected = (entry.last_sequence + 1) & MAX_SEQUENCE
        last_sequence = (base_sequence + offset_delta) & MAX_SEQUENCE
        for batch in entry.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == offset_delta:
                return batch
        if base_sequence != expected:
            raise OutOfOrderSequenceError(producer_id, base_sequence, expected)
        return None

    def stage(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        offset_delta: int,
        base_offset: int,
        timestamp: int,
        attributes: int,
        now_ms: int,
    ) -> None:
        """Take in a checked batch, until `undo`, or for good once `undo_log` is cleared."""
        entry = self.entries.get(producer_id)
        self.undo_log.append((producer_id, entry))
        self.entries[producer_id] = extended(
            entry, epoch, base_sequence, offset_delta, base_offset, timestamp, attributes, now_ms
        )

    def undo(self) -> None:
        self.entries = self.as_of(0)
        self.undo_log.clear()

    def as_of(self, staged: int) -> dict[int, ProducerEntry]:
        """The entries as they were when only the first `staged` batches were staged."""
        entries = dict(self.entries)
        for producer_id, entry in reversed(self.undo_log[staged:]):
            if entry is None:
                entries.pop(producer_id, None)
            else:
                entries[producer_id] = entry
        return entries

    def partial_entry(self, producer_id: int) -> ProducerEntry | None:
        """The producer's entry, if the log may know more of it."""
        entry = self.entries.get(producer_id)
        return entry if entry is not None and entry.is_partial else None

    def complete(self, producer_id: int, earlier: list[ProducerBatch]) -> None:
        """Add to a partial entry what the log knew of the producer."""
        entry = self.entries[producer_id]
        completed = entry._replace(batches=(*earlier, *entry.batches), is_partial=False)
        self.entries[producer_id] = completed

    def cut_back(self, earlier: "ProducerStates") -> None:
        """The log was cut to where `earlier` was rebuilt from it.

        Who was known before the cut stays known, and was last heard of when it was.
        """
        known = self.entries
        self.entries = {
            producer_id: entry._replace(last_append_ms=known[producer_id].last_append_ms)
            for producer_id, entry in earlier.entries.items()
            if producer_id in known
        }

    def replay(self, fields: tuple[int, ...], coordinator_epoch: int | None, now_ms: int) -> None:
        """Take in a batch found in the log (fields in BatchHeader's order).

        `coordinator_epoch` is that of the marker when the batch is a control batch. When it was
        appended nobody knows any more: that it is found now counts, so nobody is forgotten early.
        """
        producer_id, epoch = fields[9], fields[10]
        if producer_id < 0:
            return
        entry = self.entries.get(producer_id)
        if fields[5] & CONTROL_BIT:
            if coordinator_epoch is None:
                return
            batches = entry.batches if entry is not None and entry.epoch == epoch else ()
            self.entries[producer_id] = ProducerEntry(epoch, batches, now_ms, coordinator_epoch)
            return
        if fields[11] < 0:
            return
        self.entries[producer_id] = extended(
            entry, epoch, fields[11], fields[6], fields[0], fields[8], fields[5], now_ms
        )

    def expire(self, now_ms: int, expiration_ms: int, steady_ms: int) -> int:
        """Forget producers that were silent for too long; how many.

        `steady_ms` is of a clock that is never set: it tells whether the wall clock was.
        """
        ahead_ms = now_ms - steady_ms
        if self._ahead_ms is None or abs(ahead_ms - self._ahead_ms) > _CLOCK_WAS_SET_MS:
            self._follow_clock(0 if self._ahead_ms is None else ahead_ms - self._ahead_ms, now_ms)
            self._ahead_ms = ahead_ms
        limit = now_ms - expiration_ms
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.last_append_ms <= limit and entry.txn_first_offset == NO_OFFSET
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)

    def _follow_clock(self, set_by_ms: int, now_ms: int) -> None:
        """Nobody was silent for longer because the clock was set forward. None has been heard
        of in the future, either: else a clock set back would keep them for ever."""
        set_forward_ms = max(set_by_ms, 0)
        for producer_id, entry in self.entries.items():
            append_ms = min(entry.last_append_ms + set_forward_ms, now_ms)
            if append_ms != entry.last_append_ms:
                self.entries[producer_id] = entry._replace(last_append_ms=append_ms)


def extended(
    entry: ProducerEntry | None,
    epoch: int,
    base_sequence: int,
    offset_delta: int,
    base_offset: int,
    timestamp: int,
    attributes: int,
    now_ms: int,
) -> ProducerEntry:
    """The entry after one more batch, which came at `now_ms`."""
    batch = ProducerBatch(
        (base_sequence + offset_delta) & MAX_SEQUENCE,
        base_offset + offset_delta,
        offset_delta,
        timestamp,
    )
    if entry is None:
        first = base_offset if attributes & TRANSACTIONAL_BIT else NO_OFFSET
        return ProducerEntry(epoch, (batch,), now_ms, -1, first)
    # A clock that was wrong for one batch does not take back when the producer was heard of.
    now_ms = max(entry.last_append_ms, now_ms)
    first = entry.txn_first_offset
    if first == NO_OFFSET and attributes & TRANSACTIONAL_BIT:
        first = base_offset
    if epoch != entry.epoch:
        return ProducerEntry(epoch, (batch,), now_ms, entry.coordinator_epoch, first)
    batches = (*entry.batches[1 - REMEMBERED_BATCHES :], batch)
    is_partial = entry.is_partial and len(batches) < REMEMBERED_BATCHES
    return ProducerEntry(epoch, batches, now_ms, entry.coordinator_epoch, first, is_partial)
