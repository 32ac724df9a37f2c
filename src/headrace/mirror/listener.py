"""What a mirror tells while it works, and to whom: the seam to whoever shows it."""

from typing import NamedTuple, Protocol

COPYING, VERIFYING, FOLLOWING = "copying", "verifying", "following"


class Progress(NamedTuple):
    """How far one phase has come. `total` counts offsets, so gaps make it an upper bound."""

    phase: str
    done: int
    total: int
    messages: int
    size_bytes: int
    seconds: float


class Listener(Protocol):
    """Called in the mirror's own thread; must return at once."""

    def note(self, sentence: str) -> None:
        """Something the operator should know."""

    def progress(self, progress: Progress) -> None:
        """Called several times a second."""


class Silence:
    """Tells nobody."""

    def note(self, sentence: str) -> None: ...

    def progress(self, progress: Progress) -> None: ...
