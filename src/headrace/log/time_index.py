"""The sparse time index of one segment: the running maximum timestamp and its offset.

An entry is (maximum timestamp so far, last offset of the batch that holds it); the
timestamps strictly increase. Only what is not yet in the file is kept in memory.
"""

import os
import struct
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from headrace.log.files import write_all
from headrace.records.find import find_disorder

ENTRY = struct.Struct(">qi")
ENTRY_SIZE = ENTRY.size
NO_TIMESTAMP = -1


class TimeEntries(NamedTuple):
    """The entries in the first `size` bytes of an index file. Reads it; may do so in any thread."""

    path: Path
    size: int
    is_checked: bool

    def search(self, timestamp: int) -> tuple[int, str | None]:
        """(relative offset of the last entry at or before `timestamp` or 0, None or a fault)."""
        data = self._read()
        fault = None if self.is_checked else self._find_fault(data)
        if fault is not None:
            return 0, fault
        count = len(data) // ENTRY_SIZE
        found = bisect_right(
            range(count), timestamp, key=lambda i: ENTRY.unpack_from(data, i * ENTRY_SIZE)[0]
        )
        return (ENTRY.unpack_from(data, (found - 1) * ENTRY_SIZE)[1] if found else 0), None

    def find_fault(self) -> str | None:
        """Look at every entry; the fault when they do not increase."""
        return None if self.is_checked else self._find_fault(self._read())

    def _find_fault(self, data: bytes) -> str | None:
        if len(data) < self.size:
            return f"it has {len(data)} of {self.size} bytes"
        wrong = find_disorder(data)
        if wrong < 0:
            return None
        return f"its entries do not increase at {ENTRY.unpack_from(data, wrong * ENTRY_SIZE)}"

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes()[: self.size] if self.size else b""
        except FileNotFoundError:
            return b""


def pack_entries(entries: list[tuple[int, int]]) -> bytes:
    """Entries as they lie in the file."""
    return b"".join([ENTRY.pack(*entry) for entry in entries])


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
        found = self.lookup_pending(timestamp)
        if found is None:
            found, _ = self.in_file().search(timestamp)
        return self.base_offset + found

    def lookup_pending(self, timestamp: int) -> int | None:
        """As `lookup`, but relative, and None when only the file can tell."""
        pending = self.pending
        if pending and pending[0][0] <= timestamp:
            return pending[bisect_right(pending, (timestamp, 2**31)) - 1][1]
        return None if self.count > len(pending) else 0

    def find_fault(self) -> str | None:
        """Look at every entry of the file, once; the fault when they do not increase."""
        fault = self.in_file().find_fault()
        self.is_checked = self.is_checked or fault is None
        return fault

    def in_file(self) -> "TimeEntries":
        """The entries that are in the file now, for any thread to look at."""
        written = (self.count - len(self.pending)) * ENTRY_SIZE
        return TimeEntries(self.path, written, self.is_checked)

    def flush(self, packed: bytes | None = None) -> None:
        """Bring the file to exactly the entries known; `packed` are those pending."""
        pending = self.pending
        written = (self.count - len(pending)) * ENTRY_SIZE
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            write_all(fd, pack_entries(pending) if packed is None else packed, written)
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

    def replace(self, other: "TimeIndex") -> None:
        """Have the entries of `other`, which were all made anew; the next flush writes them."""
        self.clear()
        self.pending, self.count = other.pending, other.count
        self.last_timestamp, self.last_offset = other.last_timestamp, other.last_offset

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
