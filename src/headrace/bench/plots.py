"""The report as pictures: how many times Kafka each row is, and what it costs in CPU."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from headrace.bench.report import REFERENCE, SUBJECT, Results
from headrace.bench.workloads import Row

_BETTER, _WORSE = "#2a7f9e", "#c2571a"
_COLOURS = {REFERENCE: "#9a9a9a", SUBJECT: _BETTER}


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
    summaries = {broker: results.summary(row, broker) for broker in (REFERENCE, SUBJECT)}
    return {
        broker: summary.cpu_per_million
        for broker, summary in summaries.items()
        if summary and summary.cpu_per_million is not None
    }


def _plot_advantages(compared: Sequence[tuple[Row, float]], path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 1 + 0.36 * len(compared)), layout="constrained")
    titles = [row.title for row, _ in compared]
    values = [value for _, value in compared]
    bars = axes.barh(titles, values, color=[_BETTER if v >= 1 else _WORSE for v in values])
    axes.bar_label(bars, labels=[f"{value:.2f}" for value in values], padding=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("headrace: times better than Apache Kafka on the same machine (median, log)")
    axes.invert_yaxis()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def _plot_cpu(results: Results, rows: Sequence[Row], path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 1 + 0.5 * len(rows)), layout="constrained")
    for index, broker in enumerate((REFERENCE, SUBJECT)):
        costs = [_cpu(results, row).get(broker, 0) for row in rows]
        positions = [position + 0.4 * index for position in range(len(rows))]
        axes.barh(positions, costs, height=0.38, color=_COLOURS[broker], label=broker)
    axes.set_yticks([position + 0.2 for position in range(len(rows))], [r.title for r in rows])
    axes.set_xscale("log")
    axes.set_xlabel("broker CPU seconds per million messages (log)")
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path
