import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.errors import BenchError
from bench.pipelines.memory import Memory, MemorySample, watch_memory
from bench.pipelines.metering import Meter, Pass

SPIN = "import time\nwhile time.process_time() < {}: pass\ninput()"


def spinning(seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SPIN.format(seconds)], stdin=subprocess.PIPE, text=True
    )


def wait_for_cpu(meter: Meter, name: str, seconds: float) -> None:
    deadline = time.monotonic() + 180
    while meter.cpu_seconds()[name] < seconds:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_servers_cpu_is_told_apart_from_ours():
    with spinning(0.6) as server, spinning(0.4) as worker:
        meter = Meter({"broker": server.pid})
        try:
            measured = meter.measure(
                1_000, lambda: wait_for_cpu(meter, "broker", 0.5), broker="broker"
            )
            wait_for_cpu(Meter({"worker": worker.pid}), "worker", 0.3)
            without = Meter({"broker": server.pid, "worker": worker.pid}).cpu_seconds()
            whole = meter.cpu_seconds()
        finally:
            server.kill()
            worker.kill()

    assert measured.broker_cpu_seconds > 0
    assert measured.rows == 1_000
    # A process that is not named as a server is one of ours.
    assert whole["driver"] - without["driver"] >= 0.3


def test_costs_are_per_million_rows():
    one = Pass(500_000, 2.0, 1.5, 0.25, 0.5)

    assert one.rows_per_second == 250_000
    assert (one.cpu_per_million, one.broker_cpu_per_million) == (3.0, 0.5)
    assert one.database_cpu_per_million == 1.0


def memory_of(*megabytes: int) -> Memory:
    mib = 1024 * 1024
    return Memory(
        tuple(
            MemorySample(float(index), index * 100, size * mib)
            for index, size in enumerate(megabytes)
        )
    )


def test_memory_that_stays_is_flat_and_memory_that_grows_is_not():
    flat, growing = memory_of(300, 900, 1000, 1000, 1010), memory_of(300, 500, 700, 900, 1100)

    assert "flat" in flat.describe()
    assert "GROWS" in growing.describe()
    assert growing.peak_bytes == 1100 * 1024 * 1024


def test_too_few_batches_to_tell_is_an_error():
    with pytest.raises(BenchError, match="too few batches"):
        _ = memory_of(300, 300).growth


def test_a_watched_command_that_fails_is_an_error_with_its_last_words(tmp_path: Path):
    command = ["-c", "import sys; print('no such topic'); sys.exit(3)"]

    with pytest.raises(BenchError, match=r"code 3.*\n.*no such topic"):
        watch_memory(command, tmp_path / "log", lambda: 0, lambda _: None)
