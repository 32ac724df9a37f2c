"""What a broker that died in the middle of a deletion or compaction left behind.

`.deleted` was on its way out, `.cleaned` was not finished: both go. `.swap` was finished
and replaces the segments it was made from, unless a `.cleaned` beside it shows that the
set was not complete (a crash while Kafka renamed them, the highest offset first).
"""

import os
from pathlib import Path

from headrace.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    parse_segment_file,
    segment_file,
)
from headrace.log.scanner import scan_file

_TEMPORARY_SUFFIX = ".tmp"


def clear_leftovers(directory: Path, repairs: list[str]) -> None:
    """Bring the directory to segment files only."""
    names = sorted(entry.name for entry in directory.iterdir())
    cleaned = [_offset(name) for name in names if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    first_cleaned = min(cleaned, default=None)
    # Before the `.cleaned` ones: without those, a crash here would make the rest look complete.
    for name in swaps:
        if first_cleaned is not None and _offset(name) >= first_cleaned:
            (directory / name).unlink()
            repairs.append(f"{directory / name}: removed, its compaction was not finished")
    for name in names:
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, _TEMPORARY_SUFFIX)):
            (directory / name).unlink()
            if not name.endswith(_TEMPORARY_SUFFIX):
                repairs.append(f"{directory / name}: removed, a leftover of a deletion")
    for name in swaps:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX) and (directory / name).exists():
            _remove_replaced(directory, name)
    for name in swaps:
        if (directory / name).exists():
            (directory / name).rename(directory / name.removesuffix(SWAP_SUFFIX))
            repairs.append(f"{directory / name}: put in place, its compaction was finished")
    _remove_orphans(directory, repairs)


def _remove_orphans(directory: Path, repairs: list[str]) -> None:
    """Remove indexes without a log: a crash hit while a segment's files went one by one."""
    names = [entry.name for entry in directory.iterdir()]
    for name in names:
        parsed = parse_segment_file(name)
        if parsed and parsed[1] in SEGMENT_SUFFIXES:
            log_name = segment_file(directory, parsed[0], LOG_SUFFIX).name
            if log_name not in names:
                (directory / name).unlink()
                repairs.append(f"{directory / name}: removed, it has no log")


def _remove_replaced(directory: Path, swap_name: str) -> None:
    """Remove the segments the swap file was made from."""
    start = _offset(swap_name)
    path = directory / swap_name
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = scan_file(fd, 0, os.fstat(fd).st_size, start).next_offset
    finally:
        os.close(fd)
    for name in [entry.name for entry in directory.iterdir()]:
        parsed = parse_segment_file(name)
        if parsed and parsed[1] == LOG_SUFFIX and start <= parsed[0] < max(end, start + 1):
            for suffix in SEGMENT_SUFFIXES:
                segment_file(directory, parsed[0], suffix).unlink(missing_ok=True)


def _offset(name: str) -> int:
    parsed = parse_segment_file(".".join(name.split(".")[:2]))
    return parsed[0] if parsed else 0
