"""How a drill stands while it runs: a few lines on stderr that are redrawn, on a terminal only."""

import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from headrace.kafka.drill.stage import Status
    from headrace.kafka.drill.timeline import Event

_EVENTS = 6  # the latest, while the whole timeline is printed when the scenario is over
_EVERY_S = 0.2
_RATE_OVER_S = 1.0


class DrillView:
    """Shown while it is entered. Events come from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events = deque["Event"](maxlen=_EVENTS)
        self._live: Any = None
        self._next_at = 0.0
        self._rate = 0.0
        self._rate_from: tuple[float, int] = (0.0, 0)

    def __enter__(self) -> Self:
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_terminal:
            from rich.live import Live

            self._live = Live(console=console, transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def take_event(self, event: "Event") -> None:
        """Something happened."""
        with self._lock:
            self._events.append(event)

    def take_status(self, status: "Status") -> None:
        """Redraw, but not more often than anybody can read."""
        if self._live is None or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + _EVERY_S
        since_s, count = self._rate_from
        if status.at_s - since_s >= _RATE_OVER_S:
            self._rate = (status.acknowledged - count) / (status.at_s - since_s)
            self._rate_from = (status.at_s, status.acknowledged)
        self._live.update(self._drawn(status), refresh=True)

    def above(self, say: Callable[[], None]) -> None:
        """Print something that stays."""
        if self._live is None:
            say()
            return
        from rich.text import Text

        self._live.update(Text(""), refresh=True)
        self._live.stop()
        say()
        self._live.start()

    def _drawn(self, status: "Status") -> Any:
        from rich.console import Group
        from rich.text import Text

        head = Text(f"{status.at_s:6.1f} s  ")
        head.append(status.title, style="bold")
        head.append(f": {status.phase}")
        if status.total:
            head.append(f" {status.done:,} of {status.total:,}")
        counts = Text(
            f"          {status.acknowledged:,} of {status.sent:,} acknowledged, "
            f"{self._rate:,.0f}/s"
        )
        if status.failed:
            counts.append(f", {status.failed:,} failed", style="red")
        if status.silent_s >= 1:
            counts.append(f", a publisher waits for {status.silent_s:.1f} s", style="yellow")
        with self._lock:
            events = [Text(f"{each.at_s:6.1f} s  {each.text}", "dim") for each in self._events]
        return Group(*events, head, counts)
