"""What lies on a target behind the noted ends when a run starts, and nobody has noted.

An attempt that died wrote it, or the batches that came after a checkpoint which was put back. Read
by the driver, once for each batch that may be among it: only marks of the batch in hand are kept,
so that memory is bounded by a batch.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.client.bus import ISOLATION_LEVEL, READ_UNCOMMITTED, Bus
from headrace.client.error_table import is_end_of_partition
from headrace.client.librdkafka import Partition, error_of, make_consumer, places
from headrace.pipelines.definition import Run
from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.topic_marks import Marks, RecordPlace, SourceMark, read_mark
from headrace.pipelines.sinks.topic_notes import TopicEnd, TopicSinkNote, unknown_from
from headrace.pipelines.spans import Batch, Range
from headrace.pipelines.topic_positions import BusSilentError

# Spark ends the worker of a task it has given up after two seconds, and Java's end ends all of
# them at once; what they had sent is in the log by then, unless the broker itself hangs.
SETTLE_S = 5.0
_READ_TIMEOUT_S = 60.0
_READ_AT_ONCE = 10_000
_READ_PAUSE_S = 0.2  # consume waits this long for more, even when it has some


class Leftovers:
    """Marks of one app in some ranges of a target. Used by one thread."""

    def __init__(
        self,
        bus: Bus,
        app_id: str,
        starts: Mapping[Partition, int],
        ends: Mapping[Partition, int],
        *,
        is_settling: bool,
    ) -> None:
        """`is_settling`: an attempt may have died just now, so that records may still come."""
        self._bus = bus
        self._app_id = app_id
        self._starts = dict(starts)
        self._ends = dict(ends)
        self._is_settling = is_settling
        # Up to where the sources of what is there go; None: nobody has looked yet.
        self._reach: dict[Partition, int] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left that a batch to come could find."""
        return self._reach is not None and not self._reach

    def of(self, batch: Batch) -> Marks:
        """What of a batch is there."""
        marks = Marks()
        if self._reach is not None and not self._may_hold(batch):
            return marks
        is_of_batch = _chooser(batch)
        reach = dict[Partition, int]()

        def take(mark: SourceMark) -> bool:
            if mark.app_id != self._app_id:
                return False
            topic, partition, offset = mark.source
            reach[topic, partition] = max(reach.get((topic, partition), 0), offset + 1)
            if is_of_batch(mark.source):
                marks.add(mark.source, mark.digest)
            return True

        self._ends = self._scan(take, SETTLE_S if self._is_settling else 0.0)
        self._is_settling = False
        if self._reach is None:
            self._reach = reach
        return marks

    def passed(self, batch: Batch) -> None:
        """A batch is written and noted, so what came before its end is behind us."""
        if self._reach is None:
            return
        if batch.holds is None:
            self._reach = {}
            return
        for log, (_, end) in batch.holds:
            if self._reach.get((log.topic, log.partition), end + 1) <= end:
                del self._reach[log.topic, log.partition]

    def _may_hold(self, batch: Batch) -> bool:
        assert self._reach is not None
        if batch.holds is None:
            return bool(self._reach)
        return any(
            start < self._reach.get((log.topic, log.partition), 0)
            for log, (start, _) in batch.holds
        )

    def _scan(self, take: Callable[[SourceMark], bool], settle_s: float) -> dict[Partition, int]:
        """Read to the ends, and until none of ours has come for so long; give where that was."""
        left = {each for each, end in self._ends.items() if self._starts[each] < end}
        reached = dict(self._ends)
        if not left and not settle_s:
            return reached
        consumer = self._consumer(self._starts if settle_s else left)
        try:
            heard_at = ours_at = time.monotonic()
            while left or time.monotonic() - ours_at < settle_s:
                messages = consumer.consume(_READ_AT_ONCE, _READ_PAUSE_S)
                if messages or not left:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > _READ_TIMEOUT_S:
                    raise BusSilentError(f"{self._bus.bootstrap} did not give back {_names(left)}")
                for message in messages:
                    each = message.topic(), message.partition()
                    if self._is_end(message):
                        left.discard(each)
                        continue
                    offset = message.offset()
                    if offset + 1 >= self._ends[each]:
                        left.discard(each)
                    if offset >= self._ends[each] and not settle_s:
                        continue  # written since: by others, or by this run
                    reached[each] = max(reached[each], offset + 1)
                    mark = read_mark(message.headers())
                    if mark is not None and take(mark):
                        ours_at = time.monotonic()
        finally:
            consumer.close()
        return reached

    def _consumer(self, partitions: Iterable[Partition]) -> Any:
        # A properties file for another purpose names a group, whose place is not ours to move.
        fixed = {
            "group.id": "headrace-topic-sink",  # librdkafka wants one; nothing is committed
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
        # Ours are in no transaction, and must not wait for one of somebody else's to end.
        properties = {**self._bus.properties, ISOLATION_LEVEL: READ_UNCOMMITTED}
        consumer = make_consumer(Bus(self._bus.bootstrap, properties, self._bus.sources), {}, fixed)
        consumer.assign(places({each: self._starts[each] for each in partitions}))
        return consumer

    def _is_end(self, message: Any) -> bool:
        """Whether it is no record but says that there are no more."""
        reason = message.error()
        if reason is None:
            return False
        if not is_end_of_partition(reason):
            error = error_of(reason)
            kind = BusSilentError if error.is_passing else SinkError
            raise kind(f"{self._bus.bootstrap} did not give back what is there: {error}")
        return True


class Unnoted:
    """What is behind the noted ends when a run begins to write. Used by one thread.

    Rows may name any topic of the bus, and most of those that grow are not ours. So a topic is
    looked at when a batch first names it; until then its noted end stays as it was, for this run as
    for those after it.
    """

    def __init__(self, run: Run, note: TopicSinkNote, found: Mapping[str, TopicEnd]) -> None:
        """`found`: where the topics end that the run may write to."""
        self._run = run
        self._note = note
        self._noted = note.ends
        self._starts, self._renewed = unknown_from(note.ends, found)
        self._ends = {
            (topic, number): offset
            for topic, end in found.items()
            for number, offset in end.offsets.items()
        }
        self._looks = list[Leftovers]()
        # Topics that nobody has looked at though they hold something.
        self._unseen = {each[0] for each, start in self._starts.items() if start < self._ends[each]}

    def of(self, batch: Batch, named: Callable[[], set[str]]) -> Marks:
        """What of a batch is there; `named` gives the topics that its rows name."""
        if not self._looks:
            # Where a dead attempt wrote, records may still come.
            self._look_at(self._note.topics | named())
        elif self._unseen and (new := self._unseen & named()):
            self._look_at(new)
        marks = Marks()
        for look in self._looks:
            marks.add_all(look.of(batch))
        return marks

    def passed(self, batch: Batch, ends: Mapping[str, TopicEnd]) -> Mapping[str, TopicEnd]:
        """A batch is written; gives those of the topics' ends that may be noted with it."""
        for look in self._looks:
            look.passed(batch)
        if not all(look.is_over for look in self._looks):
            return self._noted
        seen = {topic: end for topic, end in ends.items() if topic not in self._unseen}
        unseen = {topic: end for topic, end in self._noted.items() if topic in self._unseen}
        self._noted = seen | unseen
        return self._noted

    def _look_at(self, topics: set[str] | frozenset[str]) -> None:
        for topic in self._renewed:
            if topic in topics:
                self._run.tell(
                    f"topic {topic} was deleted and made again since this run last wrote to it; "
                    "what was on it is not written again"
                )
        starts = {each: start for each, start in self._starts.items() if each[0] in topics}
        self._looks.append(
            Leftovers(
                self._run.bus,
                self._run.app_id,
                starts,
                {each: self._ends[each] for each in starts},
                is_settling=self._note.is_begun and not self._looks,
            )
        )
        self._unseen -= topics


def _names(partitions: Iterable[Partition]) -> str:
    return "what is on topic " + ", ".join(sorted({topic for topic, _ in partitions}))


def _chooser(batch: Batch) -> Callable[[RecordPlace], bool]:
    """Whether a record is one of the batch's; where that is not known, all may be."""
    if batch.holds is None:
        return lambda source: True
    ranges = dict[Partition, list[Range]]()
    for log, each in batch.holds:
        ranges.setdefault((log.topic, log.partition), []).append(each)

    def is_of_batch(source: RecordPlace) -> bool:
        held = ranges.get((source.topic, source.partition), ())
        return any(start <= source.offset < end for start, end in held)

    return is_of_batch
