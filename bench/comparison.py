"""Two commits of headrace side by side: ratios round by round, their spread, and a verdict."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.table import Table

from bench.report import SUBJECT, Results, Summary, number, spread, summary_json
from bench.workloads import Row

BASELINE, NOW = "baseline", SUBJECT
# Nothing nearer to 1 is called a difference, and nothing that one round contradicts.
MARGIN = 0.05
ROUNDS_FOR_A_VERDICT = 3
TOO_FEW, UNDECIDED = "too few rounds", "no difference shown"
NOTE = (
    f"A ratio is now/{BASELINE}, round by round: the rounds' median (lowest–highest). A verdict "
    f"needs every round, and {ROUNDS_FOR_A_VERDICT} at least, more than {MARGIN:.0%} to one side."
)


class Ratio(NamedTuple):
    """Now divided by the baseline, in every round."""

    median: float
    lowest: float
    highest: float
    rounds: int

    @property
    def is_more(self) -> bool:
        """Whether it is more by every round."""
        return self.rounds >= ROUNDS_FOR_A_VERDICT and self.lowest > 1 + MARGIN

    @property
    def is_less(self) -> bool:
        """Whether it is less by every round."""
        return self.rounds >= ROUNDS_FOR_A_VERDICT and self.highest < 1 - MARGIN

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lowest:.2f}–{self.highest:.2f})"


class Compared(NamedTuple):
    """One row on both."""

    row: Row
    baseline: Summary
    now: Summary

    @property
    def ratio(self) -> Ratio | None:
        return _ratio(self.now.samples, self.baseline.samples)

    @property
    def cpu_ratio(self) -> Ratio | None:
        return _ratio(self.now.cpu_samples, self.baseline.cpu_samples)

    @property
    def verdict(self) -> str:
        """What the rounds agree on; "worse" is said of a spread that lies wholly beyond MARGIN."""
        if len(self.now.samples) < ROUNDS_FOR_A_VERDICT:
            return TOO_FEW
        said = []
        if ratio := self.ratio:
            is_higher, is_lower = ratio.is_more, ratio.is_less
            if not self.row.is_higher_better:
                is_higher, is_lower = is_lower, is_higher
            said += ["better"] * is_higher + ["worse"] * is_lower
        if cpu := self.cpu_ratio:
            said += ["worse: more CPU"] * cpu.is_more + ["less CPU"] * cpu.is_less
        return ", ".join(said) or UNDECIDED


def _ratio(now: Sequence[float], baseline: Sequence[float]) -> Ratio | None:
    pairs = [(one, other) for one, other in zip(now, baseline, strict=True) if other]
    if not pairs:
        return None
    ratios = [one / other for one, other in pairs]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios), len(ratios))


def compare(results: Results, rows: Sequence[Row]) -> list[Compared]:
    """Every row that was measured on both."""
    return [
        Compared(row, baseline, now)
        for row in rows
        if (baseline := results.summary(row, BASELINE)) and (now := results.summary(row, NOW))
    ]


def make_table(compared: Sequence[Compared]) -> Table:
    """The comparison as people read it."""
    table = Table(title="medians (ranges); ↓: lower is better")
    table.add_column("workload")
    table.add_column("unit")
    for title in (BASELINE, "now", "ratio"):
        table.add_column(title, justify="right")
    for title in (BASELINE, "now", "ratio"):
        table.add_column(f"CPU s/M msg\n{title}", justify="right")
    table.add_column("verdict")
    for one in compared:
        row = one.row
        table.add_row(
            row.title,
            row.unit if row.is_higher_better else f"{row.unit} ↓",
            spread(one.baseline),
            spread(one.now),
            str(one.ratio or "–"),
            *(_cpu(summary) for summary in (one.baseline, one.now)),
            str(one.cpu_ratio or "–"),
            one.verdict,
        )
    return table


def _cpu(summary: Summary) -> str:
    return "–" if summary.cpu_per_million is None else number(summary.cpu_per_million)


def to_json(compared: Sequence[Compared], facts: dict[str, Any]) -> dict[str, Any]:
    """The comparison as programs read it: every sample, nothing rounded."""
    return {
        **facts,
        "margin": MARGIN,
        "rows": [
            {
                "key": one.row.key,
                "title": one.row.title,
                "unit": one.row.unit,
                "is_higher_better": one.row.is_higher_better,
                "baseline": summary_json(one.baseline),
                "now": summary_json(one.now),
                "ratio": one.ratio._asdict() if one.ratio else None,
                "cpu_ratio": one.cpu_ratio._asdict() if one.cpu_ratio else None,
                "verdict": one.verdict,
            }
            for one in compared
        ],
    }
