"""How far a mirror has come, on stderr: a bar on a terminal, a line now and then elsewhere."""

import time
from types import TracebackType
from typing import Any, Self

from headrace.cli.endings import tell
from headrace.cli.terminal import human_bytes, is_plain
from headrace.mirror.interface import FOLLOWING, MirrorProgress

_BAR_EVERY_S = 0.2
_LINE_EVERY_S = 10.0
_RATE_OVER_S = 5.0  # long enough to be steady, short enough to show a change


class MirrorView:
    """The listener of a mirror. Shown while it is entered."""

    def __init__(self, *, is_plain_wanted: bool = False) -> None:
        import sys

        self._is_plain = is_plain_wanted or is_plain(sys.stderr)
        self._bar: Any = None
        self._task: Any = None
        self._phase = ""
        self._next_at = 0.0
        self._past: tuple[float, int] = (0.0, 0)
        self._rate = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop_bar()

    def note(self, sentence: str) -> None:
        """Say it above the bar."""
        if self._bar is None:
            tell(sentence)
        else:
            self._bar.console.print(f"headrace: {sentence}", markup=False, highlight=False)

    def progress(self, progress: MirrorProgress) -> None:
        """Show it, if it is time to."""
        now = time.monotonic()
        if progress.phase != self._phase:
            self._phase = progress.phase
            self._past, self._rate = (progress.seconds, progress.messages), 0.0
            self._stop_bar()
            self._next_at = now + (_LINE_EVERY_S if self._is_plain else 0)
        if now < self._next_at:
            return
        self._next_at = now + (_LINE_EVERY_S if self._is_plain else _BAR_EVERY_S)
        self._measure(progress)
        if self._is_plain:
            tell(describe(progress, self._rate))
        else:
            self._draw(progress)

    def _measure(self, progress: MirrorProgress) -> None:
        seconds, messages = self._past
        passed_s = progress.seconds - seconds
        if passed_s > 0:
            self._rate = (progress.messages - messages) / passed_s
        if passed_s > _RATE_OVER_S:
            self._past = progress.seconds, progress.messages

    def _draw(self, progress: MirrorProgress) -> None:
        from rich import progress as bars
        from rich.console import Console

        if self._bar is None:
            has_end = progress.phase != FOLLOWING
            columns: list[bars.ProgressColumn] = [
                bars.TextColumn("{task.description}"),
                bars.BarColumn(30) if has_end else bars.SpinnerColumn(),
                bars.TextColumn("{task.fields[text]}"),
            ]
            self._bar = bars.Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(progress.phase, total=progress.total, text="")
            self._bar.start()
        text = describe(progress, self._rate).partition(": ")[2]
        self._bar.update(self._task, completed=progress.done, total=progress.total, text=text)

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def describe(progress: MirrorProgress, rate: float) -> str:
    """One line: how much of how much, how fast, how long still."""
    size = human_bytes(progress.size_bytes)
    if progress.phase == FOLLOWING:
        return f"following: {progress.messages:,} messages, {size}, {rate:,.0f}/s"
    left = progress.total - progress.done
    words = [f"{progress.done:,} of {progress.total:,}", size, f"{rate:,.0f}/s"]
    if rate > 0:
        words.append(f"{_duration(left / rate)} left")
    return f"{progress.phase}: {', '.join(words)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
