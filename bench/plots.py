"""The report as pictures: how many times Kafka each row is, and what it costs in CPU."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report import BROKERS, KAFKA, SUBJECT, Results
from bench.workloads import Row

_BETTER, _WORSE = "#2a7f9e", "#c2571a"
_COLOURS = {KAFKA: "#9a9a9a", SUBJECT: _BETTER}


def can_plot() -> bool:
    """Return whether matplotlib, which is optional, is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def write_plots(results: Results, rows: Sequence[Row], directory: Path) -> list[Path]:
    """Write the pictures that the results allow; return their paths."""
    import matplotlib

    matplotlib.use("Agg")  # files only, no display
    paths = []
    compared = [(row, value) for row in rows if (value := results.advantage(row)) is not None]
    if compared:
        paths.append(_plot_advantages(compared, directory / "times-kafka.png"))
    costed = [row for row in results.rows_measured(rows) if _cpu(results, row)]
    if costed:
        paths.append(_plot_cpu(results, costed, directory / "cpu.png"))
    return paths


def _cpu(results: Results, row: Row) -> dict[str, float]:
    summaries = {broker: results.summary(row, broker) for broker in BROKERS}
    return {
        broker: summary.cpu_per_million
        for broker, summary in summaries.items()
        if summary and summary.cpu_per_million is not None
    }


def _plot_advantages(compared: Sequence[tuple[Row, float]], path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=_size(len(compared)), layout="constrained")
    titles = [row.title for row, _ in compared]
    values = [value for _, value in compared]
    # From 1 outwards: on a logarithmic axis a bar has no other honest beginning.
    bars = axes.barh(
        titles,
        [value - 1 for value in values],
        left=1,
        color=[_BETTER if value >= 1 else _WORSE for value in values],
    )
    axes.bar_label(bars, labels=[f"{value:.2f}" for value in values], padding=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.15, y=0.01)
    _finish(axes, "times better than Apache Kafka (median)")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def _plot_cpu(results: Results, rows: Sequence[Row], path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=_size(len(rows)), layout="constrained")
    costs = [_cpu(results, row) for row in rows]
    for title, cost in zip((row.title for row in rows), costs, strict=True):
        axes.plot([min(cost.values()), max(cost.values())], [title] * 2, color="#cccccc", zorder=1)
    for broker in BROKERS:
        points = [
            (cost[broker], row.title)
            for cost, row in zip(costs, rows, strict=True)
            if broker in cost
        ]
        if points:
            axes.scatter(*zip(*points, strict=True), color=_COLOURS[broker], label=broker, zorder=2)
    axes.grid(axis="x", which="both", linewidth=0.3)
    figure.legend(loc="outside upper right", ncols=2)
    _finish(axes, "broker CPU seconds per million messages: left is better")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def _size(rows: int) -> tuple[float, float]:
    return 12, max(3, 1 + 0.36 * rows)


def _finish(axes: Any, label: str) -> None:
    """Draw the value axis logarithmic with plain numbers, the first row on top."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel(label)
    axes.invert_yaxis()
