"""What came of a run: samples in, medians, ranges and ratios out, as a table and as JSON."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.table import Table

from bench.stage import Sample
from bench.workloads import Row

SUBJECT, KAFKA = "headrace", "kafka"
BROKERS = (KAFKA, SUBJECT)
PROCESS_ROWS = (
    Row(key="ready", title="start to first answer", unit="s", is_higher_better=False),
    Row(key="rss", title="memory (RSS) after the load", unit="MB", is_higher_better=False),
)


class Summary(NamedTuple):
    """All samples of one row on one broker."""

    samples: tuple[float, ...]
    cpu_samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def cpu_per_million(self) -> float | None:
        return statistics.median(self.cpu_samples) if self.cpu_samples else None


@dataclass(slots=True)
class Results:
    """Samples by row and broker, in the order they were measured."""

    _samples: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)

    def add(self, broker: str, samples: Iterable[Sample]) -> None:
        for sample in samples:
            self._samples.setdefault((sample.row, broker), []).append(sample)

    def summary(self, row: Row, broker: str) -> Summary | None:
        samples = self._samples.get((row.key, broker))
        if not samples:
            return None
        cpu = (s.cpu_per_million for s in samples if s.cpu_per_million is not None)
        return Summary(tuple(s.value for s in samples), tuple(cpu))

    def ratio(self, row: Row) -> float | None:
        """Return headrace's median divided by Kafka's, whichever way is better."""
        subject, kafka = self.summary(row, SUBJECT), self.summary(row, KAFKA)
        if subject is None or kafka is None or kafka.median == 0:
            return None
        return subject.median / kafka.median

    def advantage(self, row: Row) -> float | None:
        """Return how many times better headrace is: over 1 is better for every row."""
        ratio = self.ratio(row)
        if ratio is None or row.is_higher_better:
            return ratio
        return 1 / ratio if ratio else None

    def rows_measured(self, rows: Sequence[Row]) -> list[Row]:
        measured = {row for row, _ in self._samples}
        return [row for row in rows if row.key in measured]


def number(value: float) -> str:
    """Write a value with the three digits that can be trusted, as 1.41M, 352k, 562, 0.21."""
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            return f"{_three_digits(value / size)}{suffix}"
    return _three_digits(value)


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2 if value >= 0.0995 else 3
    return f"{value:.{digits}f}"


def spread(summary: Summary | None) -> str:
    """Write a median with its range."""
    if summary is None:
        return "–"
    text = number(summary.median)
    if len(summary.samples) == 1:
        return text
    return f"{text} ({number(min(summary.samples))}–{number(max(summary.samples))})"


def make_table(results: Results, rows: Sequence[Row]) -> Table:
    """Return the report as people read it."""
    times = f"times {KAFKA}"
    table = Table(title=f"medians (ranges); {times}: over 1 is better; ↓: lower is better")
    table.add_column("workload")
    table.add_column("unit")
    for broker in BROKERS:
        table.add_column(broker, justify="right")
    table.add_column(times, justify="right")
    for broker in BROKERS:
        table.add_column(f"CPU s/M msg\n{broker}", justify="right")
    for row in results.rows_measured(rows):
        summaries = [results.summary(row, broker) for broker in BROKERS]
        advantage = results.advantage(row)
        cpu = [summary.cpu_per_million if summary else None for summary in summaries]
        table.add_row(
            row.title,
            row.unit if row.is_higher_better else f"{row.unit} ↓",
            *map(spread, summaries),
            "–" if advantage is None else f"{advantage:.2f}",
            *("–" if value is None else number(value) for value in cpu),
        )
    return table


def to_json(results: Results, rows: Sequence[Row], facts: dict[str, Any]) -> dict[str, Any]:
    """Return the report as programs read it: every sample, nothing rounded."""
    return {
        **facts,
        "rows": [
            {
                "key": row.key,
                "title": row.title,
                "unit": row.unit,
                "is_higher_better": row.is_higher_better,
                "ratio": results.ratio(row),
                "advantage": results.advantage(row),
                "brokers": {
                    broker: summary_json(summary)
                    for broker in BROKERS
                    if (summary := results.summary(row, broker))
                },
            }
            for row in results.rows_measured(rows)
        ],
    }


def summary_json(summary: Summary) -> dict[str, Any]:
    """All samples of a row on a broker, and what they come to."""
    return {
        "median": summary.median,
        "min": min(summary.samples),
        "max": max(summary.samples),
        "samples": list(summary.samples),
        "cpu_seconds_per_million_messages": summary.cpu_per_million,
        "cpu_samples": list(summary.cpu_samples),
    }
