"""Whether a run's memory stays flat: a whole `headrace pipeline run` watched over many rows."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.errors import BenchError
from bench.pipelines.jobs import rows_in_lake
from bench.pipelines.metering import tree_rss_bytes
from bench.pipelines.rows import Expected
from headrace.kafka import process
from headrace.pipelines.running.run_state import read_run

_SAMPLE_SECONDS = 0.5
_STOP_GRACE_SECONDS = 60
# The second half of the rows may hold this much more than the first, which has the warm-up in it.
FLAT_RATIO = 1.10
_MIB = 1024 * 1024
_RUN_NAME = "bench-memory"


class MemorySample(NamedTuple):
    """The driver's memory, JVM and Python together, after so many rows."""

    at_s: float
    rows: int
    rss_bytes: int


class Memory(NamedTuple):
    """All samples of one run."""

    samples: tuple[MemorySample, ...]

    @property
    def halves(self) -> tuple[float, float]:
        """The median in the first half of the rows, from the first committed batch, and after."""
        working = [sample for sample in self.samples if sample.rows > 0]
        middle = working[-1].rows / 2
        first = [sample.rss_bytes for sample in working if sample.rows <= middle]
        second = [sample.rss_bytes for sample in working if sample.rows > middle]
        if not first or not second:
            raise BenchError("too few batches to tell whether memory grows; measure more rows")
        return statistics.median(first), statistics.median(second)

    @property
    def growth(self) -> float:
        """The second half's median as a share of the first's."""
        first, second = self.halves
        return second / first

    @property
    def peak_bytes(self) -> int:
        return max(sample.rss_bytes for sample in self.samples)

    def describe(self) -> str:
        """One sentence."""
        first, second = self.halves
        verdict = "flat" if self.growth <= FLAT_RATIO else "GROWS"
        return (
            f"memory over {self.samples[-1].rows:,} rows: median {first / _MIB:.0f} MB in the "
            f"first half, {second / _MIB:.0f} MB in the second ({self.growth:.2f}, {verdict} "
            f"at up to {FLAT_RATIO}), peak {self.peak_bytes / _MIB:.0f} MB"
        )


def watch_memory(
    command: Sequence[str | Path],
    log_file: Path,
    done: Callable[[], int],
    show: Callable[[int], None],
) -> Memory:
    """Run `command` to its end; `done` tells the rows it has committed."""
    samples: list[MemorySample] = []
    running = process.start([sys.executable, *command], output=log_file)
    started_at = time.monotonic()
    try:
        while True:
            try:
                code = running.wait(_SAMPLE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                sample = MemorySample(
                    time.monotonic() - started_at, done(), tree_rss_bytes(running.pid)
                )
                samples.append(sample)
                show(sample.rows)
    finally:
        process.stop(running, _STOP_GRACE_SECONDS)
    if code:
        raise BenchError(f"the run ended with code {code}; it said:\n{process.tail(log_file)}")
    return Memory(tuple(samples))


def measure_memory(
    bootstrap: str, topic: str, expected: Expected, place: Path, show: Callable[[str], None]
) -> Memory:
    """Archive a whole topic with `headrace pipeline run`, as a user would, and watch it."""
    place.mkdir()
    lake, state_dir = place / "lake", place / "state"
    command: list[str | Path] = ["-m", "headrace", "pipeline", "run", "archive"]
    command += ["--bootstrap", bootstrap, "--topic", topic, "--to", f"parquet:{lake}"]
    command += ["--trigger", "available-now", "--state-dir", state_dir, "--name", _RUN_NAME]

    def done() -> int:
        status = read_run(state_dir, _RUN_NAME)
        return int(status.progress["rows"]) if status and status.progress else 0

    memory = watch_memory(
        command,
        place / "run.log",
        done,
        lambda rows: show(f"memory: {rows:,} of {expected.rows:,} rows archived"),
    )
    expected.check_lake("archive, watched for memory", rows_in_lake(lake))
    return memory
