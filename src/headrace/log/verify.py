"""Check a whole data directory, or one partition's, without changing or locking it.

On a live directory the end of each last segment may be in flight: an incomplete batch
there is reported as a tail, not as damage.
"""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from headrace.log import time_index
from headrace.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    parse_segment_file,
    segment_file,
)
from headrace.log.offset_index import OffsetIndex
from headrace.log.producer_snapshot import SnapshotError, decode_snapshot
from headrace.log.scanner import scan_file
from headrace.records.batch import Buffer

_NO_LIMIT = 2**63 - 1


class Finding(NamedTuple):
    """One thing that is not as it should be. `position` is a byte in the file."""

    path: Path
    position: int
    kind: str  # "damage", "tail", "index" or "snapshot"
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.kind} at byte {self.position}: {self.reason}"


def verify_directory(
    path: Path, on_progress: Callable[[int, int], None] | None = None
) -> list[Finding]:
    """Check every batch, index and snapshot; `on_progress(bytes done, bytes in all)`."""
    directories = [path] if _segments_in(path) else sorted(p for p in path.iterdir() if p.is_dir())
    found = [(directory, _segments_in(directory)) for directory in directories]
    total = sum(size for _, sizes in found for size in sizes.values())
    done = 0
    findings: list[Finding] = []
    for directory, sizes in found:
        bases = sorted(sizes)
        for base_offset, limit in pairwise([*bases, _NO_LIMIT]):
            findings += _verify_segment(directory, base_offset, limit)
            done += sizes[base_offset]
            if on_progress is not None:
                on_progress(done, total)
        findings += _verify_snapshots(directory)
    return findings


def _segments_in(directory: Path) -> dict[int, int]:
    """Base offset -> size of each segment."""
    sizes = {}
    for entry in directory.iterdir():
        parsed = parse_segment_file(entry.name)
        if parsed is not None and parsed[1] == LOG_SUFFIX:
            sizes[parsed[0]] = entry.stat().st_size
    return sizes


def _verify_segment(directory: Path, base_offset: int, limit: int) -> list[Finding]:
    path = segment_file(directory, base_offset, LOG_SUFFIX)
    last_offsets: dict[int, int] = {}  # position -> last offset, of the batches in the file
    timestamps: dict[int, int] = {}  # last offset -> maximum timestamp

    def visit(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
        last_offset = fields[0] + fields[6]
        last_offsets[position] = last_offset
        timestamps[last_offset] = fields[8]

    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []  # a live broker deleted it meanwhile
    try:
        size = os.fstat(fd).st_size
        scan = scan_file(fd, 0, size, base_offset, visit, offset_limit=limit)
    finally:
        os.close(fd)
    findings = [
        Finding(
            path,
            damage.start,
            "tail" if damage.end == size and limit == _NO_LIMIT else "damage",
            damage.reason,
        )
        for damage in scan.damages
    ]
    findings += _verify_offset_index(directory, base_offset, size, last_offsets)
    findings += _verify_time_index(directory, base_offset, timestamps)
    return findings


def _verify_offset_index(
    directory: Path, base_offset: int, size: int, last_offsets: dict[int, int]
) -> list[Finding]:
    path = segment_file(directory, base_offset, INDEX_SUFFIX)
    index = OffsetIndex(path, base_offset)
    fault = index.load(size)
    if fault is not None:
        return [Finding(path, 0, "index", fault)]
    for entry, (relative, position) in enumerate(zip(index.offsets, index.positions, strict=True)):
        if last_offsets.get(position) != base_offset + relative:
            reason = f"entry ({base_offset + relative}, {position}) leads to no such batch"
            return [Finding(path, entry * 8, "index", reason)]
    return []


def _verify_time_index(
    directory: Path, base_offset: int, timestamps: dict[int, int]
) -> list[Finding]:
    path = segment_file(directory, base_offset, TIME_INDEX_SUFFIX)
    index = time_index.TimeIndex(path, base_offset)
    fault = index.open() or index.find_fault()
    if fault is not None:
        return [Finding(path, 0, "index", fault)] if timestamps else []
    entries = time_index.ENTRY.iter_unpack(path.read_bytes()[: index.count * time_index.ENTRY_SIZE])
    for number, (timestamp, relative) in enumerate(entries):
        if timestamps.get(base_offset + relative) != timestamp:
            reason = f"entry ({timestamp}, {base_offset + relative}) leads to no such batch"
            return [Finding(path, number * time_index.ENTRY_SIZE, "index", reason)]
    return []


def _verify_snapshots(directory: Path) -> list[Finding]:
    findings = []
    for path in sorted(directory.glob(f"*{SNAPSHOT_SUFFIX}")):
        try:
            decode_snapshot(path.read_bytes())
        except FileNotFoundError:
            continue
        except SnapshotError as error:
            findings.append(Finding(path, 0, "snapshot", str(error)))
    return findings
