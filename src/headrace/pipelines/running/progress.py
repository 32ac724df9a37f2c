"""How a run is doing, from what Spark reports of its batches.

Spark's own row count counts a row twice when a batch is read twice, and its offsets count gaps.
Where the batch itself has counted its rows that figure is taken, else the smaller of the two.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Offsets = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """One partition: the next offset to be read, and the end of the log when last seen."""

    topic: str
    partition: int
    offset: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """Records still to be read."""
        return None if self.end is None else max(self.end - self.offset, 0)


@dataclass(slots=True)
class RunProgress:
    """A run's figures since it started. Changed by the runner only."""

    started_at: float  # wall clock, seconds
    batches: int = 0
    rows: int = 0
    batch_id: int | None = None
    # Of the last batch that had rows.
    batch_rows: int = 0
    batch_s: float = 0.0
    phases_s: dict[str, float] = field(default_factory=dict)
    last_batch_at: float | None = None
    partitions: list[PartitionProgress] = field(default_factory=list)
    state_rows: int = 0
    state_bytes: int = 0
    dead_letters: int = 0
    drift_reports: int = 0
    restarts: int = 0
    # The number of the last batch Spark has reported on, also one without rows.
    last_report: int = -1
    # The batch being written, and since when.
    running_batch: int | None = None
    running_since: float | None = None
    bus_unreachable_since: float | None = None

    @property
    def rows_per_s(self) -> float:
        """The rate of the last batch, its planning and its commit included."""
        return self.batch_rows / self.batch_s if self.batch_s else 0.0

    @property
    def lag(self) -> int | None:
        """Records still to be read, of all partitions; None before it is known."""
        lags = [each.lag for each in self.partitions if each.lag is not None]
        return sum(lags) if lags else None

    @property
    def offsets(self) -> Offsets:
        """The next offset of each partition, as consumer groups commit them."""
        offsets = Offsets()
        for each in self.partitions:
            offsets.setdefault(each.topic, {})[str(each.partition)] = each.offset
        return offsets

    def take_in(self, report: Mapping[str, Any], now: float, counted: int | None = None) -> None:
        """Add one of Spark's progress reports: of a batch, or of a look that found nothing.

        `counted` is how many rows the batch itself counted, if it did.
        """
        self.last_report = max(self.last_report, report.get("batchId", -1))
        operators = report.get("stateOperators") or []
        self.state_rows = sum(each.get("numRowsTotal", 0) for each in operators)
        self.state_bytes = sum(each.get("memoryUsedBytes", 0) for each in operators)
        sources = report.get("sources") or []
        self.partitions = _partitions(sources) or self.partitions
        rows = _rows(report, sources)
        if rows and counted is not None:
            rows = counted
        if not rows:
            return
        durations = report.get("durationMs") or {}
        self.batches += 1
        self.rows += rows
        self.batch_id = report["batchId"]
        self.batch_rows = rows
        self.batch_s = durations.get("triggerExecution", 0) / 1000
        self.phases_s = {name: value / 1000 for name, value in durations.items()}
        self.last_batch_at = now

    def take_in_whole(self, rows: int, seconds: float, now: float) -> None:
        """Add the one batch of a source that has an end."""
        self.batches, self.rows, self.batch_rows = 1, rows, rows
        self.batch_id, self.batch_s, self.last_batch_at = 0, seconds, now

    def as_json(self) -> dict[str, object]:
        """All figures, for status.json."""
        return {
            "batches": self.batches,
            "rows": self.rows,
            "rows_per_s": round(self.rows_per_s, 1),
            "batch_id": self.batch_id,
            "batch_rows": self.batch_rows,
            "batch_s": self.batch_s,
            "phases_s": self.phases_s,
            "last_batch_at": self.last_batch_at,
            "lag": self.lag,
            "partitions": [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "offset": each.offset,
                    "end": each.end,
                    "lag": each.lag,
                }
                for each in self.partitions
            ],
            "state_rows": self.state_rows,
            "state_bytes": self.state_bytes,
            "dead_letters": self.dead_letters,
            "drift_reports": self.drift_reports,
            "restarts": self.restarts,
            "running_batch": self.running_batch,
            "running_since": self.running_since,
            "bus_unreachable_since": self.bus_unreachable_since,
        }


def _partitions(sources: list[Mapping[str, Any]]) -> list[PartitionProgress]:
    found = list[PartitionProgress]()
    for source in sources:
        reached, ends = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for topic, numbers in sorted(reached.items()):
            for number, offset in sorted(numbers.items(), key=lambda item: int(item[0])):
                end = ends.get(topic, {}).get(number)
                # What was read was there, whatever the look before it saw.
                end = None if end is None else max(end, offset)
                found.append(PartitionProgress(topic, int(number), offset, end))
    return found


def _rows(report: Mapping[str, Any], sources: list[Mapping[str, Any]]) -> int:
    counted = int(report.get("numInputRows") or 0)
    spanned = 0
    for source in sources:
        start, end = _offsets(source.get("startOffset")), _offsets(source.get("endOffset"))
        if not start:
            return counted  # the first batch of a checkpoint does not say where it began
        for topic, numbers in end.items():
            for number, offset in numbers.items():
                begun = start.get(topic, {}).get(number)
                if begun is None:
                    return counted  # a partition that is new
                spanned += offset - begun
    return min(counted, spanned)


def _offsets(value: object) -> Offsets:
    """Offsets of a Kafka source, which come as an object or as its text; {} for any other."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        return {}
    return value
