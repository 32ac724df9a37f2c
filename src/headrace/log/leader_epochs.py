"""The leader epochs of one partition: from which offset on each held.

Kept in Kafka's `leader-epoch-checkpoint`. A headrace broker is always the leader, so a
log that was born here has the one line `0 0`; one that comes from Kafka has more.
"""

from bisect import bisect_right
from pathlib import Path

from headrace.log.files import replace_file

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1


class LeaderEpochs:
    """(epoch, start offset) pairs, both ascending."""

    __slots__ = ("_path", "entries")

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self.entries: list[tuple[int, int]] = []

    @property
    def latest(self) -> int:
        return self.entries[-1][0] if self.entries else 0

    def load(self) -> str | None:
        """Read the file; the fault when it cannot be believed (it is then left empty)."""
        try:
            lines = self._path.read_text("ascii").splitlines()
        except FileNotFoundError:
            return None
        except ValueError:
            return "it is not text"
        try:
            pairs = [tuple(int(word) for word in line.split()) for line in lines[2:]]
            if lines[0].strip() != "0" or int(lines[1]) != len(pairs):
                return "its version or count is wrong"
            self.entries = [(epoch, start) for epoch, start in pairs]
        except (ValueError, IndexError):
            return "a line is not two numbers"
        if self.entries != sorted(self.entries):
            self.entries = []
            return "its epochs do not ascend"
        return None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`; False when that is nothing new."""
        if self.entries and epoch <= self.entries[-1][0]:
            return False
        self.entries.append((epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest known epoch up to `epoch`; (-1, -1) if unknown."""
        entries = self.entries
        if epoch < 0 or not entries or epoch > entries[-1][0]:
            return UNDEFINED, UNDEFINED
        if epoch == entries[-1][0]:
            return epoch, log_end_offset
        behind = bisect_right(entries, (epoch, 2**63))
        if behind == 0:
            return epoch, entries[0][1]
        return entries[behind - 1][0], entries[behind][1]

    def cut_start(self, start_offset: int) -> None:
        """The log now begins at `start_offset`."""
        before = [entry for entry in self.entries if entry[1] <= start_offset]
        if before:
            self.entries[: len(before)] = [(before[-1][0], start_offset)]

    def cut_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`."""
        self.entries = [entry for entry in self.entries if entry[1] < end_offset]

    def write(self) -> None:
        lines = ["0", str(len(self.entries)), *(f"{epoch} {at}" for epoch, at in self.entries)]
        replace_file(self._path, ("\n".join(lines) + "\n").encode(), is_durable=False)
