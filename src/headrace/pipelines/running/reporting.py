"""Who is told how a run is doing: the view, status.json, the run's log and the metrics' reader."""

import contextlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from headrace.pipelines.running.progress import RunProgress
from headrace.pipelines.running.run_state import STARTING, RunDirectory

# status.json is for people and monitors; neither looks more often.
_STATUS_INTERVAL_S = 1.0


class View:
    """What a run shows. This one shows nothing; `view.py` has those that do."""

    def begin(self, facts: Mapping[str, object]) -> None:
        """The run starts; `facts` are those of run.json."""

    def tell(self, sentence: str) -> None:
        """Something happened. May come from any thread."""

    def show(self, state: str, message: str | None, progress: RunProgress) -> None:
        """The figures now; comes several times a second."""

    def end(self, state: str, message: str | None, progress: RunProgress) -> None:
        """The run is over."""


class Reporter:
    """The one place a run speaks to. `tell` may come from any thread, the rest from the main."""

    def __init__(self, directory: RunDirectory, view: View, facts: Mapping[str, object]) -> None:
        self.progress = RunProgress(started_at=time.time())
        self._directory = directory
        self._view = view
        self._state = STARTING
        self._message: str | None = None
        self._written_at = 0.0
        directory.begin(facts)
        view.begin(facts)

    @property
    def state(self) -> str:
        """As it was set last."""
        return self._state

    def tell(self, sentence: str) -> None:
        """Say one sentence to the user, and keep it in the run's log."""
        self._view.tell(sentence)
        # A full disk must not end a run for the sake of its log.
        with contextlib.suppress(OSError), self._directory.told_file.open("a") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {sentence}\n")

    def set_state(self, state: str, message: str | None = None) -> None:
        """Change what the run is doing."""
        if (state, message) != (self._state, self._message):
            self._state, self._message = state, message
            self._written_at = 0.0
        self.refresh()

    def refresh(self) -> None:
        """Show the figures as they are now."""
        self._view.show(self._state, self._message, self.progress)
        now = time.monotonic()
        if now - self._written_at >= _STATUS_INTERVAL_S:
            self._written_at = now
            with contextlib.suppress(OSError):
                self._directory.update(self._state, self._message, self.progress.as_json())

    def end(self, state: str, message: str | None = None) -> None:
        """The run is over."""
        self._state, self._message = state, message
        self._view.end(state, message, self.progress)
        self._directory.update(state, message, self.progress.as_json())
