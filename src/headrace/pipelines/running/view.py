"""What a run shows while it runs: a view that is redrawn on a terminal, lines elsewhere.

Both go to stderr: stdout belongs to sinks that print rows. A view keeps the stream it was made
with: what `sys.stderr` is while a run goes on belongs to the libraries.
"""

import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from headrace.pipelines.running.progress import RunProgress
from headrace.pipelines.running.reporting import View
from headrace.pipelines.running.run_state import FAILED

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

# In a log, a line now and then says that the run lives; a line a batch would bury the rest.
LINE_INTERVAL_S = 10.0
_REDRAWS_PER_S = 4
# More partitions than fit on a screen: those with the most lag are shown.
_MOST_PARTITIONS = 12
_NONE = "-"


def view_for(stream: TextIO, *, is_plain: bool, is_quiet: bool = False) -> View:
    """The view for a stream."""
    if is_quiet:
        return QuietView(stream)
    return LineView(stream) if is_plain else LiveView(stream)


class QuietView(View):
    """Tells what happens and shows no figures."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def tell(self, sentence: str) -> None:
        self._print(sentence)

    def _print(self, text: str) -> None:
        print(f"headrace: {text}", file=self._stream, flush=True)


class LineView(QuietView):
    """A line when something happens, and one with the figures every ten seconds."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._name = ""
        self._state = ""
        self._shown_at = float("-inf")
        self._shown = ""

    def begin(self, facts: Mapping[str, object]) -> None:
        self._name = str(facts["pipeline"])
        self._print(opening_line(facts))

    def show(self, state: str, message: str | None, progress: RunProgress) -> None:
        if state != self._state:
            self._state = state
            self._print(f"{self._name}: {state}{f', {message}' if message else ''}")
        now = time.monotonic()
        line = figures_line(progress)
        if progress.batches and now - self._shown_at >= LINE_INTERVAL_S and line != self._shown:
            self._shown_at, self._shown = now, line
            self._print(f"{self._name}: {line}")

    def end(self, state: str, message: str | None, progress: RunProgress) -> None:
        # What failed is told by whoever called.
        if state != FAILED:
            self._print(f"{self._name}: {state}; {totals_line(progress)}")


class LiveView(View):
    """A few lines and a table of partitions, redrawn in place; sentences scroll above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream)
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._facts: Mapping[str, object] = {}
        self._drawn_at = 0.0

    def begin(self, facts: Mapping[str, object]) -> None:
        from rich.live import Live

        self._facts = facts
        # A sink that prints rows to the same terminal prints them above the view. What goes to
        # stderr meanwhile is of the libraries, and goes where the caller sends it.
        is_shared = sys.stdout.isatty()
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=is_shared,
            redirect_stderr=False,
        )
        self._print(opening_line(facts))
        self._live.start()
        # A second Ctrl-C ends the process on the spot: the cursor must not stay hidden then.
        self._console.show_cursor(True)

    def tell(self, sentence: str) -> None:
        with self._lock:
            self._print(f"{datetime.now(UTC).strftime('%H:%M:%S')} {sentence}")

    def show(self, state: str, message: str | None, progress: RunProgress) -> None:
        now = time.monotonic()
        if self._live is None or now - self._drawn_at < 1 / _REDRAWS_PER_S:
            return
        self._drawn_at = now
        with self._lock:
            self._live.update(self._drawing(state, message, progress), refresh=True)

    def end(self, state: str, message: str | None, progress: RunProgress) -> None:
        with self._lock:
            if self._live is None:
                return
            self._live.update(self._drawing(state, None, progress), refresh=True)
            self._live.stop()
            if state != FAILED:
                self._print(f"{state}; {totals_line(progress)}")
            self._live = None

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def _drawing(self, state: str, message: str | None, progress: RunProgress) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        age_s = int(time.time() - progress.started_at)
        style = "bold red" if progress.bus_unreachable_since or state == FAILED else "bold"
        heading = f"{self._facts.get('pipeline')}  {state}"
        heading += f" ({message})" if message else ""
        lines = [Text(f"{heading}  {duration_text(age_s)}", style=style)]
        lines.append(Text(figures_line(progress)))
        return Group(*lines, *([_partition_table(progress)] if progress.partitions else []))


def opening_line(facts: Mapping[str, object]) -> str:
    """What runs, from where to where."""
    sinks = facts["sinks"]
    to = ", ".join(map(str, sinks)) if isinstance(sinks, list) else sinks
    return f"{facts['pipeline']}: {facts['source']} at {facts['bootstrap']} → {to}"


def figures_line(progress: RunProgress) -> str:
    """The figures of now in one line."""
    words = [
        f"{progress.rows:,} rows",
        f"{progress.rows_per_s:,.0f} rows/s",
        f"batch {_NONE if progress.batch_id is None else progress.batch_id} "
        f"in {progress.batch_s:.1f} s",
        f"lag {_NONE if progress.lag is None else f'{progress.lag:,}'}",
    ]
    if progress.running_batch is not None and progress.running_since is not None:
        seconds = max(time.time() - progress.running_since, 0)
        words.append(f"batch {progress.running_batch} runs for {seconds:.0f} s")
    if progress.state_rows:
        words.append(f"state {progress.state_rows:,} rows, {progress.state_bytes / 1e6:,.1f} MB")
    if progress.dead_letters:
        words.append(f"{progress.dead_letters:,} dead letters")
    if progress.restarts:
        words.append(f"{progress.restarts} restarts")
    return " · ".join(words)


def totals_line(progress: RunProgress) -> str:
    """What a run did in all."""
    seconds = max(time.time() - progress.started_at, 0.001)
    words = f"{progress.rows:,} rows in {_counted(progress.batches, 'batch', 'batches')}"
    if progress.dead_letters:
        words += f", {_counted(progress.dead_letters, 'dead letter', 'dead letters')}"
    return f"{words}, {duration_text(int(seconds))}"


def duration_text(seconds: int) -> str:
    """`42 s`, `3 min 20 s`, `5 h 1 min`."""
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _partition_table(progress: RunProgress) -> "RenderableType":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("topic")
    for column in ("partition", "offset", "end", "lag"):
        table.add_column(column, justify="right")
    shown = progress.partitions
    if len(shown) > _MOST_PARTITIONS:
        shown = sorted(shown, key=lambda each: each.lag or 0, reverse=True)[:_MOST_PARTITIONS]
        table.caption = f"the {_MOST_PARTITIONS} of {len(progress.partitions)} with the most lag"
    for each in shown:
        numbers = (each.partition, each.offset, each.end, each.lag)
        cells = [_NONE if number is None else f"{number:,}" for number in numbers]
        table.add_row(Text(each.topic), *cells)
    return table
