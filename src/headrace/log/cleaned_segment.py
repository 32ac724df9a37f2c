"""A segment that a compaction writes beside the ones it replaces, and the names it goes through.

Its `.cleaned` files are on disk, every byte, when `finish` returns: whoever renames them later
need not ask. Crash order: `.cleaned` to `.swap`, the highest offset first, so that a set with a
`.cleaned` in it is known to be incomplete; the directory is synced; only then the old files are
renamed away and `.swap` loses its suffix (see `leftovers` for a start that finds them).
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from headrace.log.files import write_all
from headrace.log.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_file,
)
from headrace.log.offset_index import OffsetIndex
from headrace.log.time_index import NO_TIMESTAMP, TimeIndex
from headrace.records.batch import HEADER, Buffer

_BUFFER_BYTES = 1024 * 1024


class CleanedSegment:
    """Written by one thread, from front to back."""

    def __init__(self, directory: Path, base_offset: int, index_interval_bytes: int) -> None:
        self.base_offset = base_offset
        self.size = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.suffixes = [INDEX_SUFFIX, TIME_INDEX_SUFFIX]  # the log itself comes last
        self._directory = directory
        self._index = OffsetIndex(self.path(INDEX_SUFFIX), base_offset, is_new=True)
        self._time_index = TimeIndex(self.path(TIME_INDEX_SUFFIX), base_offset)
        self._index_interval_bytes = index_interval_bytes
        self._indexed_position = 0
        self._pending: list[Buffer] = []
        self._pending_bytes = 0
        self._written = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = os.open(self.path(LOG_SUFFIX), flags, 0o644)

    def path(self, suffix: str) -> Path:
        return segment_file(self._directory, self.base_offset, suffix + CLEANED_SUFFIX)

    def append(self, batch: Buffer) -> None:
        """Add a batch, which already has its place in the log."""
        fields = HEADER.unpack_from(batch)
        last_offset = fields[0] + fields[6]
        if fields[8] > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = fields[8], last_offset
        if self.size - self._indexed_position > self._index_interval_bytes:
            self._index.append(last_offset, self.size)
            self._time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._indexed_position = self.size
        self._pending.append(bytes(batch))
        self._pending_bytes += len(batch)
        self.size += len(batch)
        if self._pending_bytes >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._pending)
        write_all(self._fd, data, self._written)
        self._written += len(data)
        self._pending.clear()
        self._pending_bytes = 0

    def finish(self, aborted_transactions: bytes) -> None:
        """Write what is left and the indexes, and sync every file."""
        self._flush()
        os.fsync(self._fd)
        self.close()
        self._time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self._index.flush()
        self._time_index.flush()
        if aborted_transactions:
            self.suffixes.append(TXN_INDEX_SUFFIX)
            self.path(TXN_INDEX_SUFFIX).write_bytes(aborted_transactions)
        self.suffixes.append(LOG_SUFFIX)
        _sync_all(self.path(suffix) for suffix in self.suffixes if suffix != LOG_SUFFIX)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # -- from name to name -----------------------------------------------------------------

    def announce(self) -> None:
        """Rename to `.swap`: a crash from here on makes the next start put it in place."""
        for suffix in self.suffixes:
            self.path(suffix).rename(self._swap_path(suffix))

    def put_in_place(self) -> None:
        """Have the names of a log's segment. What it replaces was renamed away."""
        for suffix in self.suffixes:
            path = self._swap_path(suffix)
            path.rename(path.with_name(path.name.removesuffix(SWAP_SUFFIX)))

    def remove(self) -> None:
        """Remove what was written, under whichever name it has; nobody needs it."""
        # The log last: an index without one would be taken for the old log's.
        for suffix in reversed(SEGMENT_SUFFIXES):
            for path in (self.path(suffix), self._swap_path(suffix)):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _swap_path(self, suffix: str) -> Path:
        path = self.path(suffix)
        return path.with_name(path.name.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX)


def _sync_all(paths: Iterable[Path]) -> None:
    for path in paths:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
