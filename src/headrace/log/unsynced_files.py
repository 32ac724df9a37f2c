"""Which files and directories of a log a sync must cover, besides its active segment.

Invariant: a path is listed from the moment its content or its name is new until a sync is done
that began with the data it belongs to in the log. Crash order: a new file's directory entry
counts too, else an acknowledged message could vanish with the name of its segment.
"""

from collections.abc import Iterator
from pathlib import Path


class UnsyncedFiles:
    """Owned by one `PartitionLog`. Thousands of paths cost no descriptor."""

    __slots__ = ("_needed",)

    def __init__(self) -> None:
        # A sync covers the path when it began with the log's end at this offset or behind it.
        self._needed: dict[Path, int] = {}

    def note(self, offset: int, *paths: Path) -> None:
        """These are new and belong to the data from `offset` on."""
        for path in paths:
            self._needed[path] = offset + 1

    def forget(self, end_offset: int) -> None:
        """A sync of all of them that began with the log's end at `end_offset` is done."""
        if self._needed:
            self._needed = {
                path: needed for path, needed in self._needed.items() if needed > end_offset
            }

    def clear(self) -> None:
        self._needed = {}

    def mark(self) -> dict[Path, int]:
        return dict(self._needed)

    def reset(self, mark: dict[Path, int]) -> None:
        """Forget what was noted since `mark`: its files are gone again."""
        self._needed = mark

    def __len__(self) -> int:
        return len(self._needed)

    def __iter__(self) -> Iterator[Path]:
        return iter(self._needed)
