"""Partitions' directories go in two steps: renamed, which takes no time, then emptied and removed.

A crash in between leaves directories whose name says that they are deleted; the next start removes
them. Both steps may run in a thread: nobody looks into these directories any more.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

from headrace.log.errors import StorageWriteError
from headrace.log.files import sync_directory
from headrace.log.names import deleted_directory_name
from headrace.model import TopicPartition


def rename_away(data_dir: Path, partitions: Collection[TopicPartition]) -> list[Path]:
    """Rename those directories that are there, with one sync for all; return their new names."""
    names = {str(partition) for partition in partitions}
    with os.scandir(data_dir) as entries:
        found = [entry.name for entry in entries if entry.name in names]
    renamed = []
    try:
        for name in found:
            target = data_dir / deleted_directory_name(name)
            try:
                (data_dir / name).rename(target)
            except OSError as error:
                raise StorageWriteError(data_dir / name, error) from error
            renamed.append(target)
    finally:
        if renamed:
            # Whether or not this succeeds, a crash may bring back what was not synced; the
            # catalog then still knows that it is to be deleted, or the name alone says so.
            with suppress(OSError):
                sync_directory(data_dir)
    return renamed


def remove_renamed(directories: Iterable[Path], is_stopped: Callable[[], bool]) -> None:
    """Remove these directories; what is left when it is stopped goes at the next start."""
    for directory in directories:
        if is_stopped():
            return
        shutil.rmtree(directory, ignore_errors=True)
