"""The first half of a compaction: for each key, the last offset it has in the dirty part.

Control records have no key of their own, and transactional ones may have been aborted, so
neither ever supersedes anything. Keys and offsets are kept in many small tables: to sort a
million offsets in one go takes half a second, in which Python lets no other thread run, not
even the one that serves clients.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from headrace.log.errors import CorruptBatchError
from headrace.log.files import OpenFile
from headrace.log.scanner import Visit, scan_file
from headrace.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_PREFIX_SIZE,
    TRANSACTIONAL_BIT,
    Buffer,
)
from headrace.records.codecs import decompress
from headrace.records.spans import read_keys

# What one key costs besides its bytes: the bytes object, the number and its place in the table.
_KEY_OVERHEAD_BYTES = 160


class ClosedSegment(NamedTuple):
    """A closed segment to be read: nobody changes its bytes, and its file stays open."""

    file: OpenFile
    base_offset: int
    end_offset: int
    size: int


# Keys are spread over this many tables. One table of a million keys takes 50 ms to grow and 80 to
# free, and Python lets no other thread run meanwhile; these take about a millisecond each.
_TABLES = 128
_BLOCK_BITS = 13  # 8,192 offsets: sorted within a millisecond


class KeyMap:
    """Last offsets by key over the offsets [start, end)."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self._tables: list[dict[bytes, int]] = [{} for _ in range(_TABLES)]
        self._count = 0
        self._key_bytes = 0

    def get(self, key: bytes, default: int) -> int:
        """The last offset of the key."""
        return self._tables[hash(key) % _TABLES].get(key, default)

    def offsets(self) -> Iterator[int]:
        """The offsets that stay, in no order."""
        for table in self._tables:
            yield from table.values()

    def clear(self, take_turns: Callable[[], None]) -> None:
        """Give the memory back; the map is of no use any more."""
        for table in self._tables:
            table.clear()
            take_turns()

    def fill(
        self, sources: list[ClosedSegment], max_bytes: int, on_batch: Callable[[], None]
    ) -> None:
        """Take in the batches from `start` on; stop behind the one that fills `max_bytes`."""
        tables = self._tables

        def visit(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
            if fields[0] < self.end:
                return
            if self._count * _KEY_OVERHEAD_BYTES + self._key_bytes >= max_bytes:
                raise _FullError
            on_batch()
            base_offset = fields[0]
            self.end = base_offset + fields[6] + 1
            if fields[5] & (CONTROL_BIT | TRANSACTIONAL_BIT):
                return
            records, start = plain_records(fields, buffer, at)
            for delta, key in read_keys(records, fields[12], start):
                if key is not None:
                    table = tables[hash(key) % _TABLES]
                    if key not in table:
                        self._count += 1
                        self._key_bytes += len(key)
                    table[key] = base_offset + delta

        try:
            for source in sources:
                if source.end_offset > self.start:
                    scan_source(source, visit)
                    self.end = max(self.end, source.end_offset)
        except _FullError:
            return


class LiveOffsets:
    """The offsets that stay, asked for by range; made of offsets in any order."""

    def __init__(self, offsets: Iterable[int], take_turns: Callable[[], None]) -> None:
        blocks: dict[int, list[int]] = {}
        for offset in offsets:
            block = blocks.get(offset >> _BLOCK_BITS)
            if block is None:
                take_turns()
                block = blocks[offset >> _BLOCK_BITS] = []
            block.append(offset)
        for block in blocks.values():
            block.sort()
            take_turns()
        self._blocks = blocks

    def clear(self, take_turns: Callable[[], None]) -> None:
        """Give the memory back."""
        for block in self._blocks.values():
            block.clear()
            take_turns()
        self._blocks = {}

    def has_any(self, first: int, last: int) -> bool:
        """Whether one of them lies in [first, last]."""
        for number in range(first >> _BLOCK_BITS, (last >> _BLOCK_BITS) + 1):
            block = self._blocks.get(number)
            if block is not None:
                at = bisect_left(block, first)
                if at < len(block) and block[at] <= last:
                    return True
        return False


class _FullError(Exception):
    """The map holds as much as it may."""


def scan_source(source: ClosedSegment, visit: Visit) -> None:
    """Show every batch of a segment to `visit`; CorruptBatchError when one is damaged."""
    scan = scan_file(
        source.file.fd,
        0,
        source.size,
        source.base_offset,
        visit,
        offset_limit=source.end_offset,
        stops_at_damage=True,
    )
    if scan.damages:
        damage = scan.damages[0]
        raise CorruptBatchError(source.file.path, damage.start, damage.reason)


def plain_records(fields: tuple[int, ...], buffer: Buffer, at: int) -> tuple[bytes, int]:
    """A batch's records decompressed, and where they begin in the bytes returned."""
    codec = fields[5] & CODEC_MASK
    start = at + HEADER_SIZE
    if not codec and isinstance(buffer, bytes):
        return buffer, start
    end = at + fields[1] + LENGTH_PREFIX_SIZE
    return bytes(decompress(codec, memoryview(buffer)[start:end])), 0
