"""What came of a run: medians with ranges, ratios beside their targets, as tables and JSON."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from bench.pipelines.contests import Contest, ContestResults
from bench.pipelines.metering import Pass
from bench.report import Summary, number, spread

COLUMNS = ("rows/s", "CPU s/M rows", "broker CPU s/M", "database CPU s/M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One figure divided by another, or alone, and what it should at least be."""

    title: str
    subject: str
    reference: str | None = None
    at_least: float | None = None

    def value(self, results: ContestResults) -> float | None:
        """The median rate, as a share of the reference's if there is one."""
        subject = _rates(results, self.subject)
        if not subject:
            return None
        if self.reference is None:
            return statistics.median(subject)
        reference = _rates(results, self.reference)
        if not reference:
            return None
        return statistics.median(subject) / statistics.median(reference)

    def verdict(self, value: float) -> str:
        """One word for people; nothing where there is no target."""
        if self.at_least is None:
            return ""
        return "met" if value >= self.at_least else "MISSED"


def _rates(results: ContestResults, key: str) -> list[float]:
    return [one.rows_per_second for one in results.passes.get(key, ())]


def summary_of(passes: Sequence[Pass]) -> Summary:
    """Rates and CPU as the other benchmark keeps them."""
    rates = tuple(one.rows_per_second for one in passes)
    return Summary(rates, tuple(one.cpu_per_million for one in passes))


def figures(passes: Sequence[Pass]) -> tuple[str, ...]:
    """One row of COLUMNS: medians, with the range where there are several."""
    summary = summary_of(passes)
    costs = Summary(summary.cpu_samples, ())
    others = (
        [one.broker_cpu_per_million for one in passes],
        [one.database_cpu_per_million for one in passes],
    )
    return (
        spread(summary),
        spread(costs),
        *(number(statistics.median(each)) if any(each) else "–" for each in others),
    )


def rows_of(contest: Contest, results: ContestResults) -> list[tuple[str, ...]]:
    """The contestants that were measured, with their figures."""
    return [
        (contestant.title, *figures(results.passes[contestant.key]))
        for contestant in contest.contestants
        if contestant.key in results.passes
    ]


def target_rows(targets: Sequence[Target], results: ContestResults) -> list[tuple[str, ...]]:
    """Each ratio or rate with its target and the verdict."""
    rows = list[tuple[str, ...]]()
    for target in targets:
        value = target.value(results)
        if value is None:
            continue
        text = number(value) if target.reference is None else f"{value:.2f}"
        wanted = target.at_least
        wanted_text = "" if wanted is None else f"≥ {number(wanted)}"
        rows.append((target.title, text, wanted_text, target.verdict(value)))
    return rows


def make_tables(
    contests: Sequence[Contest], targets: Sequence[Target], results: ContestResults
) -> list[Table]:
    """The report as people read it on a terminal."""
    tables = []
    for contest in contests:
        table = Table(title=f"{contest.title}: medians (ranges)", title_justify="left")
        _fill(table, ("", *COLUMNS), rows_of(contest, results))
        tables.append(table)
    table = Table(title="ratios of medians and targets", title_justify="left")
    _fill(table, ("", "value", "target", ""), target_rows(targets, results))
    return [*tables, table]


def _fill(table: Table, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)


def to_markdown(
    contests: Sequence[Contest],
    targets: Sequence[Target],
    results: ContestResults,
    notes: Sequence[str],
) -> str:
    """The same for a page."""
    parts = []
    for contest in contests:
        parts.append(f"### {contest.title}\n")
        parts.append(_markdown(("", *COLUMNS), rows_of(contest, results)))
    parts.append("### Ratios of medians and targets\n")
    parts.append(_markdown(("", "value", "target", ""), target_rows(targets, results)))
    parts.append("\n".join(f"- {note}" for note in notes) + "\n")
    return "\n".join(parts)


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_json(
    contests: Sequence[Contest],
    targets: Sequence[Target],
    results: ContestResults,
    facts: dict[str, Any],
) -> dict[str, Any]:
    """The report as programs read it: every pass, nothing rounded."""
    return {
        **facts,
        "contests": [
            {
                "key": contest.key,
                "title": contest.title,
                "contestants": [
                    {
                        "key": each.key,
                        "title": each.title,
                        "rows_per_second": summary_of(results.passes[each.key]).median,
                        "cpu_seconds_per_million_rows": summary_of(
                            results.passes[each.key]
                        ).cpu_per_million,
                        "passes": [one._asdict() for one in results.passes[each.key]],
                    }
                    for each in contest.contestants
                    if each.key in results.passes
                ],
            }
            for contest in contests
        ],
        "targets": [
            {
                "title": target.title,
                "subject": target.subject,
                "reference": target.reference,
                "at_least": target.at_least,
                "value": target.value(results),
            }
            for target in targets
        ],
    }
