"""The course of a drill as a picture: acknowledgements and waits over time, faults marked."""

import importlib.util
from math import nan
from pathlib import Path
from typing import Any

from headrace.installing import how_to_install
from headrace.kafka.drill.report import DrillReport, ScenarioReport
from headrace.kafka.drill.timeline import EventKind
from headrace.kafka.errors import DrillError

_ACKS, _WAIT, _FAULT, _BACK = "#2a7f9e", "#c2571a", "#b00020", "#3a7d44"
_LEAST_WAIT_S = 0.001  # the foot of the logarithmic axis


def needs() -> str:
    """What to do where `can_plot` says no."""
    return f"a plot needs matplotlib: {how_to_install('bench', 'matplotlib')}"


def can_plot() -> bool:
    """Return whether matplotlib, which is optional, is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def write_plot(report: DrillReport, path: Path) -> None:
    """Write the picture as PNG; DrillError without matplotlib or where it cannot be written."""
    if not can_plot():
        raise DrillError(needs())
    import matplotlib

    matplotlib.use("Agg")  # files only, no display
    from matplotlib import pyplot

    width = max(10.0, min(18.0, report.seconds / 15))
    figure, (acks, waits) = pyplot.subplots(
        2, 1, sharex=True, figsize=(width, 7), layout="constrained"
    )
    try:
        _draw(report, acks, waits)
        figure.suptitle(
            f"{report.cluster.brokers} brokers, Kafka {report.cluster.version}: "
            f"{'PASS' if report.is_passed else 'FAIL'}"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130, format="png")
    except OSError as error:
        raise DrillError(f"cannot write {path}: {error.strerror}") from error
    finally:
        pyplot.close(figure)


def _draw(report: DrillReport, acks: Any, waits: Any) -> None:
    times = [second.at_s for second in report.course]
    counts = [second.acknowledged for second in report.course]
    acks.fill_between(times, counts, step="post", color=_ACKS)
    acks.set_ylabel("acknowledged a second")
    acks.set_ylim(bottom=0)
    # A second without acknowledgements has no wait either: the line has a gap there.
    heights = [
        max(second.longest_wait_s, _LEAST_WAIT_S) if second.acknowledged else nan
        for second in report.course
    ]
    waits.step(times, heights, where="post", color=_WAIT)
    waits.set_yscale("log")
    waits.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    waits.set_ylabel("longest wait for an acknowledgement, s")
    waits.set_xlabel("seconds")
    for scenario in report.scenarios:
        _draw_scenario(scenario, acks, waits)
    for axes in (acks, waits):
        axes.grid(axis="y", linewidth=0.3)
        axes.margins(x=0.01)
    _draw_legend(waits)


def _draw_scenario(scenario: ScenarioReport, acks: Any, waits: Any) -> None:
    limit_s = scenario.limit.seconds
    waits.hlines(limit_s, scenario.start_s, scenario.end_s, color=_FAULT, linestyle="dotted")
    acks.annotate(
        scenario.title,
        (scenario.start_s, 1),
        xycoords=("data", "axes fraction"),
        xytext=(2, 3),
        textcoords="offset points",
        fontsize=8,
    )
    for axes in (acks, waits):
        axes.axvline(scenario.start_s, color="#cccccc", linewidth=0.8)
        for event in scenario.events:
            if event.kind in (EventKind.FAULT, EventKind.NODE):
                colour = _FAULT if event.kind is EventKind.FAULT else _BACK
                axes.axvline(event.at_s, color=colour, linewidth=0.8, linestyle="dashed")


def _draw_legend(axes: Any) -> None:
    from matplotlib.lines import Line2D

    lines = [
        Line2D([], [], color=_FAULT, linestyle="dashed", label="fault"),
        Line2D([], [], color=_BACK, linestyle="dashed", label="node stopped, started, whole"),
        Line2D([], [], color=_FAULT, linestyle="dotted", label="allowed"),
    ]
    axes.legend(handles=lines, loc="lower right", fontsize=8, ncols=3)
