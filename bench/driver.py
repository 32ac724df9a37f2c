"""What a benchmark needs of a broker, and of its process while it runs."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBroker:
    """A broker that serves on 127.0.0.1 and keeps its partitions in `data_directory`."""

    name: str
    port: int
    pid: int
    ready_seconds: float  # from the start of the process to its first answer to Metadata
    data_directory: Path

    def cpu_seconds(self) -> float:
        """User and system time of all threads so far, child processes included."""
        total = 0.0
        for process in self._processes():
            times = process.cpu_times()
            total += times.user + times.system
        return total

    def rss_bytes(self) -> int:
        """Memory held now, file pages it maps included."""
        return sum(process.memory_info().rss for process in self._processes())

    def _processes(self) -> list[psutil.Process]:
        main = psutil.Process(self.pid)
        return [main, *main.children(recursive=True)]


class Driver(Protocol):
    """Starts one kind of broker."""

    name: str
    has_jit: bool  # it becomes fast only while it runs, and is given the time

    def prepare(self, directory: Path) -> None:
        """Do once what must not be part of a measurement: download, compile."""

    def running(
        self, directory: Path, *, is_durable: bool
    ) -> AbstractContextManager[MeasuredBroker]:
        """Run a broker on an empty `directory`. Durable: acks=all waits for the disk."""


@contextmanager
def fresh(directory: Path) -> Iterator[Path]:
    """Give an empty directory and remove it with all it holds, however the block ends."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
