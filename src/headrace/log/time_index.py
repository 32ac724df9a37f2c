"""The sparse time index of one segment: the running maximum timestamp and its offset.

An entry is (maximum timestamp so far, last offset of the batch that holds it); the
timestamps strictly increase. Only what is not yet in the file is kept in memory.
"""

import os
import struct
from bisect import bisect_right
from pathlib import Path

from headrace.log.files import write_all

ENTRY = struct.Struct(">qi")
ENTRY_SIZE = ENTRY.size
NO_TIMESTAMP = -1


class TimeIndex:
    """Entries of one segment; call `open` before appending to one that has a file."""

    __slots__ = (
        "base_offset", "count", "is_checked", "is_stale", "last_offset", "last_timestamp",
        "path", "pending",
    )  # fmt: skip

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.pending: list[tuple[int, int]] = []  # (timestamp, relative offset)
        self.count = 0  # entries in the file and pending
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = base_offset
        self.is_checked = True
        self.is_stale = False  # the file holds other entries than these

    def open(self) -> str | None:
        """Take in the file's size and last entry; the fault when they make no sense."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return "the file is missing"
        try:
            size = os.fstat(fd).st_size
            last = os.pread(fd, ENTRY_SIZE, size - ENTRY_SIZE) if size >= ENTRY_SIZE else b""
        finally:
            os.close(fd)
        if size % ENTRY_SIZE:
            return f"its size {size} is not a multiple of {ENTRY_SIZE}"
        self.is_checked = False
        if last:
            timestamp, relative = ENTRY.unpack(last)
            self.count = size // ENTRY_SIZE
            if timestamp < 0 or relative < self.count - 1:
                return f"its last entry ({timestamp}, {relative}) cannot be number {self.count}"
            self.last_timestamp, self.last_offset = timestamp, self.base_offset + relative
        return None

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry when the timestamp is later than all before it."""
        if timestamp > self.last_timestamp:
            self.pending.append((timestamp, offset - self.base_offset))
            self.count += 1
            self.last_timestamp = timestamp
            self.last_offset = offset

    def lookup(self, timestamp: int) -> int:
        """An offset such that every batch before it is older than `timestamp`.

        The batch that holds the offset may itself be older.
        """
        pending = self.pending
        if pending and pending[0][0] <= timestamp:
            found = bisect_right(pending, (timestamp, 2**31)) - 1
            return self.base_offset + pending[found][1]
        data = self._read()
        count = len(data) // ENTRY_SIZE
        found = bisect_right(
            range(count), timestamp, key=lambda i: ENTRY.unpack_from(data, i * ENTRY_SIZE)[0]
        )
        if not found:
            return self.base_offset
        relative: int = ENTRY.unpack_from(data, (found - 1) * ENTRY_SIZE)[1]
        return self.base_offset + relative

    def find_fault(self) -> str | None:
        """Look at every entry of the file, once; the fault when they do not increase."""
        if self.is_checked:
            return None
        data = self._read()
        last_timestamp, last_offset = NO_TIMESTAMP, -1
        for timestamp, relative in ENTRY.iter_unpack(data):
            if timestamp <= last_timestamp or relative <= last_offset:
                return f"its entries do not increase at ({timestamp}, {relative})"
            last_timestamp, last_offset = timestamp, relative
        self.is_checked = True
        return None

    def _read(self) -> bytes:
        written = (self.count - len(self.pending)) * ENTRY_SIZE
        return self.path.read_bytes()[:written] if written else b""

    def flush(self) -> None:
        """Bring the file to exactly the entries known."""
        pending = self.pending
        written = (self.count - len(pending)) * ENTRY_SIZE
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            write_all(fd, b"".join([ENTRY.pack(*entry) for entry in pending]), written)
            os.ftruncate(fd, self.count * ENTRY_SIZE)
        finally:
            os.close(fd)
        pending.clear()
        self.is_stale = False

    @property
    def has_pending(self) -> bool:
        return self.is_stale or bool(self.pending)

    def clear(self) -> None:
        """Start again with no entries; the next flush replaces the file's."""
        self.pending.clear()
        self.is_stale = True
        self.count = 0
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = self.base_offset
        self.is_checked = True

    def truncate(self, count: int, last_timestamp: int, last_offset: int) -> None:
        """Keep the first `count` entries, the last of which is given."""
        written = self.count - len(self.pending)
        if count < written:
            os.truncate(self.path, count * ENTRY_SIZE)
            self.pending.clear()
        else:
            del self.pending[count - written :]
        self.count = count
        self.last_timestamp, self.last_offset = last_timestamp, last_offset
