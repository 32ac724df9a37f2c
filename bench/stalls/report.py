"""The table of stalls as Markdown, to be read here and pasted into docs/benchmarks.md."""

from collections.abc import Iterable, Sequence

from bench.report import KAFKA, SUBJECT
from bench.stalls.load import StallLoad
from bench.stalls.suite import Measured

# Longer than this nobody is to wait, on a machine with nothing else to do.
LIMIT_MS = 50.0
_COLUMNS = (
    "load",
    "longest stall, headrace",
    "longest stall, Kafka",
    "p99.9, headrace / Kafka",
    "memory peak, headrace / Kafka",
    "echo beside it",
    f"under {LIMIT_MS:.0f} ms",
    "what the culprit got of headrace",
    "of Kafka",
)


def markdown(measured: Iterable[Measured], loads: Sequence[StallLoad]) -> str:
    """Return the table: one row a load, in the order of the loads."""
    found = {(one.load, one.engine): one for one in measured}
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
    for load in loads:
        ours, theirs = found.get((load.name, SUBJECT)), found.get((load.name, KAFKA))
        if ours or theirs:
            lines.append("| " + " | ".join(_cells(load, ours, theirs)) + " |")
    return "\n".join(lines)


def _cells(load: StallLoad, ours: Measured | None, theirs: Measured | None) -> list[str]:
    both = (ours, theirs)
    return [
        load.title,
        *(_stall(one) for one in both),
        " / ".join(_ms(one.waiting.p999_ms) if one else "–" for one in both),
        " / ".join(_memory(one) for one in both),
        " / ".join(_ms(one.waiting.echo_longest_ms) if one else "–" for one in both),
        "–" if ours is None else verdict(ours),
        *(one.outcome.sentence().replace("|", "/") if one else "–" for one in both),
    ]


def verdict(measured: Measured) -> str:
    """Whether the innocent client was left in peace: its session kept, nobody lost, no stall."""
    waiting = measured.waiting
    is_kept = not waiting.is_evicted and not waiting.lost
    return "yes" if is_kept and waiting.longest_ms < LIMIT_MS else "**no**"


def _stall(measured: Measured | None) -> str:
    if measured is None:
        return "–"
    said = [_ms(measured.waiting.longest_ms)]
    if measured.waiting.lost:
        said.append(f"**lost**: {', '.join(measured.waiting.lost)}")
    elif measured.waiting.is_evicted:
        said.append(f"member **evicted** (error {measured.waiting.member_error})")
    return "; ".join(said)


def _ms(value: float) -> str:
    return f"{value / 1000:.2f} s" if value >= 1000 else f"{value:.{0 if value >= 10 else 1}f} ms"


def _memory(measured: Measured | None) -> str:
    if measured is None:
        return "–"
    return "ended" if measured.peak_bytes is None else f"{measured.peak_bytes / 1e6:,.0f} MB"
