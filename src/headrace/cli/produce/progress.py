"""How far `headrace produce` has come: a bar or a count on stderr, where that is a terminal."""

import time
from types import TracebackType
from typing import Any, Self

from headrace.cli.produce.sending import Sender

_EVERY_S = 0.1


class Progress:
    """Shown while it is entered. `total_bytes` None: nobody knows how much there is to read."""

    def __init__(self, total_bytes: int | None) -> None:
        self._total_bytes = total_bytes
        self._bar: Any = None
        self._task: Any = None
        self._next_at = 0.0

    def __enter__(self) -> Self:
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_terminal:
            from rich import progress

            columns: list[progress.ProgressColumn] = [
                progress.BarColumn(30) if self._total_bytes else progress.SpinnerColumn(),
                progress.DownloadColumn(),
                progress.TextColumn("{task.fields[messages]:,} messages"),
                progress.TextColumn("{task.fields[rate]:,.0f}/s"),
            ]
            if self._total_bytes:
                columns.append(progress.TimeRemainingColumn())
            self._bar = progress.Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("", total=self._total_bytes, messages=0, rate=0.0)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, read_bytes: int, sender: Sender, seconds: float) -> None:
        """Show where it is; cheap enough to be called for each block."""
        if self._bar is None or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + _EVERY_S
        acknowledged = sender.acknowledged
        self._bar.update(
            self._task,
            completed=read_bytes,
            messages=acknowledged,
            rate=acknowledged / max(seconds, 0.001),
        )
