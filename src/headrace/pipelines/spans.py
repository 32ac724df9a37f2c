"""Which records a batch holds and a sink has: ranges of offsets in logs that are known by an id.

A number says nothing of a batch: a checkpoint that was put back, or lost its files, counts anew.
So a sink notes, in one step with the rows, the offsets they were made from (`Written`), and
what a batch has beyond those is what is left to write.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.pipelines.errors import SinkError

NO_BATCH = -1

Range = tuple[int, int]  # offsets, half-open


@dataclass(frozen=True, slots=True, order=True)
class Log:
    """One partition's log. A topic that was deleted and made again has other logs."""

    topic: str
    partition: int
    topic_id: str = ""  # empty where the bus gives none


@dataclass(frozen=True, slots=True)
class Spans:
    """A set of records. The ranges of a log are in order and do not touch; none is empty."""

    ranges: Mapping[Log, tuple[Range, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, ranges: Mapping[Log, Range]) -> "Spans":
        """One range a log; a range that is empty, or ends before it starts, holds nothing."""
        return cls({log: (each,) for log, each in ranges.items() if each[0] < each[1]})

    def __bool__(self) -> bool:
        return bool(self.ranges)

    @property
    def size(self) -> int:
        """How many offsets these are; a log may lack some, which were removed or are no record."""
        return sum(end - start for _, (start, end) in self)

    def __iter__(self) -> Iterator[tuple[Log, Range]]:
        """Every range of every log, in order."""
        for log in sorted(self.ranges):
            for each in self.ranges[log]:
                yield log, each

    def __or__(self, other: "Spans") -> "Spans":
        joined = dict(self.ranges)
        for log, ranges in other.ranges.items():
            joined[log] = _joined([*joined.get(log, ()), *ranges])
        return Spans(joined)

    def __sub__(self, other: "Spans") -> "Spans":
        left = {
            log: _without(ranges, other.ranges.get(log, ())) for log, ranges in self.ranges.items()
        }
        return Spans({log: ranges for log, ranges in left.items() if ranges})

    def as_json(self) -> list[dict[str, Any]]:
        """For a note: `[{"topic": "orders", "id": "x9…", "partitions": {"0": [[0, 120]]}}]`."""
        topics = dict[tuple[str, str], dict[str, list[list[int]]]]()
        for log, (start, end) in self:
            partitions = topics.setdefault((log.topic, log.topic_id), {})
            partitions.setdefault(str(log.partition), []).append([start, end])
        return [
            {"topic": topic, "id": topic_id, "partitions": partitions}
            for (topic, topic_id), partitions in topics.items()
        ]

    @classmethod
    def from_json(cls, topics: list[dict[str, Any]]) -> "Spans":
        """Read what `as_json` gave."""
        return cls(
            {
                Log(each["topic"], int(number), each["id"]): tuple(
                    (start, end) for start, end in ranges
                )
                for each in topics
                for number, ranges in each["partitions"].items()
            }
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a run: its number, which is for people, and the records it holds."""

    number: int
    # None: the source does not say, so the number is all there is to know the batch by.
    holds: Spans | None = None
    # Of the bus the records are from; empty where it gives none.
    cluster_id: str = ""
    # What the batches of the checkpoint before this one held.
    before: Spans = field(default_factory=lambda: Spans())


@dataclass(frozen=True, slots=True)
class Written:
    """What a sink has of one app's batches. A sink stores it in one step with the rows."""

    last_batch: int = NO_BATCH
    # None: whoever wrote the note knew the number only.
    spans: Spans | None = field(default_factory=Spans)

    @classmethod
    def former(cls, last_batch: int) -> "Written":
        """The note of a version that noted numbers."""
        return cls() if last_batch <= NO_BATCH else cls(last_batch, None)

    def left_of(self, batch: Batch) -> Batch | None:
        """What of a batch is still to be written: all of it, a part, or None.

        Raises SinkError where that cannot be known.
        """
        if batch.holds is None:
            return batch if batch.number > self.last_batch else None
        if self.spans is None:
            if batch.number < self.last_batch:
                # Spark never goes back but by one: its count began anew, or was put back.
                raise SinkError(
                    f"batch {batch.number} comes after batch {self.last_batch}, of which an "
                    "earlier version of headrace noted only the number, so nobody knows what of "
                    "it is written; give the run another --name and new sinks, or put back the "
                    "checkpoint as that version left it"
                )
            return batch if batch.number > self.last_batch else None
        left = batch.holds - self.spans
        if left == batch.holds:
            return batch
        return replace(batch, holds=left) if left else None

    def after(self, batch: Batch) -> "Written":
        """The note to store with the rows of `batch`, or of what was left of it."""
        if batch.holds is None:
            return Written(batch.number, self.spans)
        known = batch.before if self.spans is None else self.spans
        return Written(batch.number, known | batch.holds)

    def to_json(self) -> str:
        """Render for the note."""
        spans = None if self.spans is None else self.spans.as_json()
        return json.dumps({"batch": self.last_batch, "spans": spans})

    @classmethod
    def from_json(cls, text: str) -> "Written":
        """Read what `to_json` rendered."""
        fields = json.loads(text)
        spans = fields["spans"]
        return cls(fields["batch"], None if spans is None else Spans.from_json(spans))


def _joined(ranges: list[Range]) -> tuple[Range, ...]:
    joined = list[Range]()
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def _without(ranges: tuple[Range, ...], others: tuple[Range, ...]) -> tuple[Range, ...]:
    left = list(ranges)
    for cut_start, cut_end in others:
        left = [
            piece
            for start, end in left
            for piece in ((start, min(end, cut_start)), (max(start, cut_end), end))
            if piece[0] < piece[1]
        ]
    return tuple(left)
