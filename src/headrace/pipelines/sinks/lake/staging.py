"""Staging: where an attempt at a batch writes its files before they are a part of the lake.

Every attempt has a directory of its own, named by app, batch, time and chance. An attempt that is
dead but still writing writes into a directory that no note will name, or a note that is void.
"""

import time
from uuid import uuid4

from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.sinks.lake.notes import ABANDONED_AFTER_MS, STAGING, pending_files


def new_attempt(app_id: str, what: str) -> str:
    """The name of a directory nobody has used."""
    return f"{STAGING}/{app_id}/{what}-{int(time.time() * 1000)}-{uuid4().hex[:8]}"


def has_own(files: HadoopFiles, app_id: str) -> bool:
    """Whether there was an attempt of this app before, which may even be at work."""
    return bool(files.list(f"{STAGING}/{app_id}"))


def clear_own(files: HadoopFiles, app_id: str) -> None:
    """Remove what earlier attempts of this app left. Its notes must be finished."""
    files.delete(f"{STAGING}/{app_id}")


def clear_abandoned(files: HadoopFiles) -> None:
    """Remove attempts of any app that are too old to be at work and that no note speaks of."""
    oldest_ms = time.time() * 1000 - ABANDONED_AFTER_MS
    old = [
        f"{STAGING}/{app.name}/{attempt.name}/"
        for app in files.list(STAGING)
        for attempt in files.list(f"{STAGING}/{app.name}")
        if started_ms(attempt.name) < oldest_ms
    ]
    spoken_for = pending_files(files) if old else set()
    for attempt in old:
        if not any(name.startswith(attempt) for name in spoken_for):
            files.delete(attempt.rstrip("/"))


def started_ms(attempt: str) -> int:
    """When an attempt began, by its name; the clock of a file system is not asked."""
    words = attempt.split("-")
    return int(words[-2]) if len(words) >= 3 and words[-2].isdigit() else 0


def staged_files(files: HadoopFiles, attempt: str) -> list[str]:
    """The Parquet files of an attempt, relative to it: `date=…/hour=…/part-….parquet`."""
    found = list[str]()
    folders = [""]
    while folders:
        folder = folders.pop()
        for entry in files.list(f"{attempt}/{folder}".rstrip("/")):
            if entry.name.startswith(("_", ".")):
                continue
            name = f"{folder}/{entry.name}".lstrip("/")
            if entry.is_directory:
                folders.append(name)
            else:
                found.append(name)
    return sorted(found)
