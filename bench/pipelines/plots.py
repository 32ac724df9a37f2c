"""The report as pictures: rates and CPU by contestant, growth with partitions, memory over rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.pipelines.contests import Contest, ContestResults
from bench.pipelines.memory import Memory
from bench.pipelines.report import summary_of

_COLOURS = ("#2a7f9e", "#9a9a9a", "#5a8f3c", "#c2571a")
_MIB = 1024 * 1024


def write_plots(
    contests: Sequence[Contest],
    growth: Sequence[tuple[str, dict[int, str]]],
    results: ContestResults,
    memory: Memory | None,
    directory: Path,
) -> list[Path]:
    """Write the pictures that the results allow; `growth` names contestants by partitions."""
    import matplotlib

    matplotlib.use("Agg")  # files only, no display
    paths = []
    if results.passes:
        paths.append(_plot_contests(contests, results, directory / "rates.png"))
    lines = [
        (title, {count: key for count, key in keys.items() if key in results.passes})
        for title, keys in growth
    ]
    if any(keys for _, keys in lines):
        paths.append(_plot_growth(lines, results, directory / "growth.png"))
    if memory is not None:
        paths.append(_plot_memory(memory, directory / "memory.png"))
    return paths


def _plot_contests(contests: Sequence[Contest], results: ContestResults, path: Path) -> Path:
    from matplotlib import pyplot

    bars = [
        (f"{contest.key}: {each.title}", index, summary_of(results.passes[each.key]))
        for contest in contests
        for index, each in enumerate(contest.contestants)
        if each.key in results.passes
    ]
    figure, (rates, costs) = pyplot.subplots(
        1, 2, sharey=True, figsize=(13, 1.5 + 0.36 * len(bars)), layout="constrained"
    )
    titles = [title for title, _, _ in bars]
    colours = [_COLOURS[index % len(_COLOURS)] for _, index, _ in bars]
    medians = [summary.median for _, _, summary in bars]
    ranges = [
        [summary.median - min(summary.samples) for _, _, summary in bars],
        [max(summary.samples) - summary.median for _, _, summary in bars],
    ]
    rates.barh(titles, medians, xerr=ranges, color=colours, ecolor="#444444", capsize=2)
    costs.barh(titles, [summary.cpu_per_million or 0 for _, _, summary in bars], color=colours)
    rates.set_xlabel("rows/s (median, range)")
    costs.set_xlabel("CPU seconds per million rows, JVM and Python")
    rates.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f}k")
    rates.invert_yaxis()
    return _save(figure, path)


def _plot_growth(
    lines: Sequence[tuple[str, dict[int, str]]], results: ContestResults, path: Path
) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    counts: set[int] = set()
    for (title, keys), colour in zip(lines, _COLOURS, strict=False):
        rates = [summary_of(results.passes[key]).median for key in keys.values()]
        axes.plot(list(keys), rates, marker="o", color=colour, label=title)
        counts.update(keys)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(counts), [str(count) for count in sorted(counts)])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f}k")
    axes.set_xlabel("partitions")
    axes.set_ylabel("rows/s (median)")
    axes.grid(linewidth=0.3)
    axes.legend()
    return _save(figure, path)


def _plot_memory(memory: Memory, path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    rows = [sample.rows / 1e6 for sample in memory.samples]
    axes.plot(rows, [sample.rss_bytes / _MIB for sample in memory.samples], color=_COLOURS[0])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("million rows archived")
    axes.set_ylabel("memory of the run (JVM and Python), MB")
    axes.grid(linewidth=0.3)
    return _save(figure, path)


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path
