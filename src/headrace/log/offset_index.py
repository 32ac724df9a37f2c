"""The sparse offset index of one segment: for some batches, where they begin.

An entry is (last offset of a batch, position where that batch starts), both strictly
increasing, so the batch that holds an offset is found by walking a short way on from
the entry at or before it. New entries are kept in memory and reach the file in pieces:
a crash loses only what recovery rebuilds. The file is exactly the entries, no padding.
"""

import os
import sys
from array import array
from bisect import bisect_right
from pathlib import Path

from headrace.log.files import write_all

ENTRY_SIZE = 8
_PIECE_ENTRIES = 16 * 1024
_IS_LITTLE_ENDIAN = sys.byteorder == "little"


class OffsetIndex:
    """Entries of one segment. `offsets` are relative to `base_offset`; empty until loaded."""

    __slots__ = ("base_offset", "is_loaded", "is_stale", "offsets", "path", "positions", "written")

    def __init__(self, path: Path, base_offset: int, *, is_new: bool = False) -> None:
        self.path = path
        self.base_offset = base_offset
        self.offsets: array[int] = array("i")
        self.positions: array[int] = array("i")
        self.written = 0  # entries already in the file
        self.is_stale = False  # the file holds other entries than these
        self.is_loaded = is_new

    def append(self, offset: int, position: int) -> None:
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)

    def lookup(self, offset: int) -> int:
        """Position of a batch at or before the one that holds `offset`."""
        found = bisect_right(self.offsets, offset - self.base_offset)
        return self.positions[found - 1] if found else 0

    def boundary_before(self, position: int) -> int:
        """The last known start of a batch at or before `position`."""
        found = bisect_right(self.positions, position)
        return self.positions[found - 1] if found else 0

    @property
    def has_pending(self) -> bool:
        return self.is_loaded and (self.is_stale or self.written < len(self.offsets))

    def flush(self) -> None:
        """Bring the file to exactly the entries in memory."""
        if not self.is_loaded:
            return
        written = self.written
        pairs = array("i", bytes(ENTRY_SIZE * (len(self.offsets) - written)))
        pairs[0::2] = self.offsets[written:]
        pairs[1::2] = self.positions[written:]
        if _IS_LITTLE_ENDIAN:
            pairs.byteswap()
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            write_all(fd, pairs.tobytes(), written * ENTRY_SIZE)
            os.ftruncate(fd, len(self.offsets) * ENTRY_SIZE)
        finally:
            os.close(fd)
        self.written = len(self.offsets)
        self.is_stale = False

    def load(self, log_size: int) -> str | None:
        """Read the file; the fault in a sentence when it cannot be this log's index."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            data = b""
            if log_size:
                return "the file is missing"
        if len(data) % ENTRY_SIZE:
            return f"its size {len(data)} is not a multiple of {ENTRY_SIZE}"
        pairs = array("i")
        pairs.frombytes(data)
        if _IS_LITTLE_ENDIAN:
            pairs.byteswap()
        offsets, positions = pairs[0::2], pairs[1::2]
        fault = _find_fault(offsets, positions, log_size)
        if fault is None:
            self.offsets, self.positions = offsets, positions
            self.written = len(offsets)
            self.is_loaded = True
        return fault

    def replace(self, other: "OffsetIndex") -> None:
        """Have the entries of `other`, which were all made anew; the next flush writes them."""
        self.clear()
        self.offsets, self.positions = other.offsets, other.positions

    def take_over(self, other: "OffsetIndex") -> None:
        """Have what `other` has loaded from the same file."""
        self.offsets, self.positions = other.offsets, other.positions
        self.written, self.is_loaded = other.written, True

    def unload(self) -> None:
        """Forget the entries; they are all in the file."""
        self.offsets, self.positions = array("i"), array("i")
        self.is_loaded = False

    def clear(self) -> None:
        """Start again with no entries; the next flush replaces the file's."""
        self.unload()
        self.is_loaded = self.is_stale = True
        self.written = 0

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        del self.offsets[count:]
        del self.positions[count:]
        if self.written > count:
            os.truncate(self.path, count * ENTRY_SIZE)
            self.written = count


def find_file_fault(path: Path, log_size: int) -> str | None:
    """A cheap look at an index file: its size and its last entry."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return "the file is missing"
    try:
        size = os.fstat(fd).st_size
        if size % ENTRY_SIZE:
            return f"its size {size} is not a multiple of {ENTRY_SIZE}"
        if size:
            last = os.pread(fd, ENTRY_SIZE, size - ENTRY_SIZE)
            offset = int.from_bytes(last[:4], "big", signed=True)
            position = int.from_bytes(last[4:], "big", signed=True)
            if offset < 0 or not 0 < position < max(log_size, 1):
                return f"its last entry ({offset}, {position}) is not inside the log"
    finally:
        os.close(fd)
    return None


def _find_fault(offsets: "array[int]", positions: "array[int]", log_size: int) -> str | None:
    if not offsets:
        return None
    if offsets[0] < 0 or positions[0] < 0:
        return "its first entry is negative"
    # Sorted and free of doubles is the same as increasing, and both are found natively. A piece
    # at a time: a thread that loads an index lets others have the interpreter in between.
    for name, values in (("offset", offsets), ("position", positions)):
        for start in range(0, len(values), _PIECE_ENTRIES):
            listed = values[start : start + _PIECE_ENTRIES + 1].tolist()
            if len(set(listed)) != len(listed) or sorted(listed) != listed:
                return f"its entries do not increase by {name}"
    if positions[-1] >= log_size:
        return f"its last entry points to byte {positions[-1]} of {log_size}"
    return None
