"""Which small files of an hour are merged, and when: a decision without I/O.

An hour that is over and quiet is merged into files of the target size. While it is still written
to, only very small files are, and only with files like them, so that a row is rewritten a few times
at most, however small the batches are.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from headrace.pipelines.hadoop_files import FileStatus

MIB = 1 << 20
# Spark splits files into tasks of 128 MiB: larger ones gain a reader nothing.
TARGET_BYTES = 128 * MIB
# A file of a quarter of the target is not worth rewriting.
SMALL_BYTES = TARGET_BYTES // 4
# While an hour is written to: above this, opening a file no longer costs more than reading it.
TINY_BYTES = MIB
TINY_FILES = 64
_TINY_STEP_BYTES = 16 * 1024
# An hour is quiet when nothing was written to it for this long: a late batch has come by then.
QUIET_AFTER_MS = 10 * 60 * 1000


def end_of_hour_ms(folder: str) -> int:
    """When `date=2026-11-16/hour=11` is over; 0 for a folder without a time."""
    try:
        day, hour = (word.partition("=")[2] for word in folder.split("/"))
        start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
        return int((start + timedelta(hours=int(hour) + 1)).timestamp() * 1000)
    except ValueError:
        return 0


def is_quiet(folder: str, written_ms: int, now_ms: int) -> bool:
    """Whether the hour is over and nobody writes to it any more."""
    return max(end_of_hour_ms(folder), written_ms) + QUIET_AFTER_MS <= now_ms


def merge_all(entries: Iterable[FileStatus]) -> list[list[FileStatus]]:
    """Groups of small files, each to become one of about the target size."""
    groups = list[list[FileStatus]]()
    room = 0
    for entry in entries:
        if entry.size_bytes >= SMALL_BYTES:
            continue
        if entry.size_bytes > room:
            groups.append([])
            room = TARGET_BYTES
        groups[-1].append(entry)
        room -= entry.size_bytes
    return [group for group in groups if len(group) > 1]


def merge_tiny(entries: Sequence[FileStatus]) -> list[list[FileStatus]]:
    """Groups of very small files of like size, of which there are too many."""
    tiers = dict[int, list[FileStatus]]()
    for entry in entries:
        if entry.size_bytes < TINY_BYTES:
            tiers.setdefault(_tier(entry.size_bytes), []).append(entry)
    return [tier for tier in tiers.values() if len(tier) >= TINY_FILES]


def _tier(size_bytes: int) -> int:
    """Files of one tier differ in size by less than a factor of eight."""
    return (size_bytes // _TINY_STEP_BYTES).bit_length() // 3
