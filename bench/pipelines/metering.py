"""What a pass cost: wall time, and the CPU of everybody who took part, each apart.

The driver is this process and all it started (the JVM, Spark's Python workers), without the
brokers and databases, which are its children too or run beside it.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import psutil


class Pass(NamedTuple):
    """One measured pass; CPU in seconds. Shares of nobody are 0."""

    rows: int
    seconds: float
    cpu_seconds: float  # JVM and Python
    broker_cpu_seconds: float = 0.0
    database_cpu_seconds: float = 0.0

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def cpu_per_million(self) -> float:
        return self.cpu_seconds / self.rows * 1e6

    @property
    def broker_cpu_per_million(self) -> float:
        return self.broker_cpu_seconds / self.rows * 1e6

    @property
    def database_cpu_per_million(self) -> float:
        return self.database_cpu_seconds / self.rows * 1e6


class Meter:
    """Reads the clocks before and after. `servers` are main process ids by name."""

    def __init__(self, servers: Mapping[str, int]) -> None:
        self._servers = dict(servers)

    def cpu_seconds(self) -> dict[str, float]:
        """CPU so far: of every server, and of "driver"."""
        spent = {name: _tree_cpu(tree(pid)) for name, pid in self._servers.items()}
        served = {process.pid for pid in self._servers.values() for process in tree(pid)}
        own = [process for process in tree(os.getpid()) if process.pid not in served]
        return {**spent, "driver": _tree_cpu(own)}

    def measure(
        self, rows: int, run: Callable[[], None], *, broker: str = "", database: str = ""
    ) -> Pass:
        """Run once; the CPU of `broker` and `database`, if named, is told apart."""
        before = self.cpu_seconds()
        started_at = time.perf_counter()
        run()
        seconds = time.perf_counter() - started_at
        after = self.cpu_seconds()
        spent = {name: after[name] - before[name] for name in after}
        return Pass(
            rows, seconds, spent["driver"], spent.get(broker, 0.0), spent.get(database, 0.0)
        )


def tree(pid: int) -> list[psutil.Process]:
    """The process and all below it; none if it is gone."""
    try:
        main = psutil.Process(pid)
        return [main, *main.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _tree_cpu(processes: Iterable[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        # With the children it has waited for: a worker that ended during the pass counts.
        total += times.user + times.system + times.children_user + times.children_system
    return total


def tree_rss_bytes(pid: int) -> int:
    """Memory of the process and all below it, as the kernel counts it."""
    total = 0
    for process in tree(pid):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
