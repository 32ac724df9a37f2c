"""The rates of the demo as a picture."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from demo.watch import Progress, rates_in

_COLOURS = ("#2a7f9e", "#c2571a", "#5a8f3c")
_FEED_COLOUR = "#9a9a9a"


def can_plot() -> bool:
    """Return whether matplotlib, which is optional, is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def write_plot(looks: Sequence[Progress], groups: Sequence[str], path: Path) -> None:
    """Draw what went in, what each pipeline did, its lag and the dead letters."""
    import matplotlib

    matplotlib.use("Agg")  # a file only, no display
    from matplotlib import pyplot

    seconds = [look.at_s for look in looks]
    figure, (rates, lags, dead) = pyplot.subplots(
        3, 1, sharex=True, figsize=(10, 8), layout="constrained", height_ratios=(3, 2, 1)
    )
    sent = [look.sent for look in looks]
    rates.plot(seconds, rates_in(looks, sent), color=_FEED_COLOUR, linewidth=3, label="sensors in")
    for group, colour in zip(groups, _COLOURS, strict=False):
        done = [look.done[group] for look in looks]
        rates.plot(seconds, rates_in(looks, done), color=colour, label=group)
        lags.plot(seconds, [look.lag(group) for look in looks], color=colour, label=group)
    dead.plot(seconds, [look.dead_letters for look in looks], color="#8b1e3f")
    rates.set_ylabel("messages/s")
    lags.set_ylabel("lag, messages")
    dead.set_ylabel("dead letters")
    dead.set_xlabel("seconds since the demo began")
    rates.legend(loc="upper left")
    for axes in (rates, lags, dead):
        axes.set_ylim(bottom=0)
        axes.grid(linewidth=0.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
