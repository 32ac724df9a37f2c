import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench import __main__ as command
from bench import machine
from bench.errors import BenchError

ROOT = Path(__file__).parents[2]


def test_an_unknown_workload_is_refused_with_the_known_ones(tmp_path, capsys):
    code = command.main(["--only", "nonsense", "--out", str(tmp_path / "out")])

    assert code == 1
    assert "no workload is called nonsense" in capsys.readouterr().err


def test_a_full_disk_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(BenchError, match="choose another disk with --data-dir"):
        machine.check_disk(tmp_path, 10**18)


def test_touching_the_page_cache_leaves_no_file(tmp_path):
    machine.touch_page_cache(tmp_path, 8 * 1024 * 1024)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("load", "is_named"), [(0.1, False), (3.2, True)])
def test_a_busy_machine_is_said_to_be_busy(monkeypatch, load, is_named):
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (load, 0, 0))

    assert any("busy (load average" in warning for warning in machine.warnings()) is is_named


def test_a_missing_accelerator_is_named(monkeypatch):
    monkeypatch.setattr(machine, "has_accelerator", lambda: False)

    assert any("_scan" in warning for warning in machine.warnings())


def bench_command(out: Path, *arguments: str) -> list[str]:
    quick = ["--quick", "--rounds", "1", "--seconds", "0.5", "--only-kafka", "--out", str(out)]
    return [sys.executable, "-m", "bench", *quick, *arguments]


@pytest.mark.slow
@pytest.mark.java
def test_a_short_run_writes_its_results_and_leaves_nothing_behind(tmp_path):
    answer = subprocess.run(
        bench_command(tmp_path, "--only", "ping"), cwd=ROOT, capture_output=True, text=True
    )

    assert answer.returncode == 0, answer.stderr
    report = json.loads((tmp_path / "results.json").read_text())
    assert [row["key"] for row in report["rows"]][:3] == ["ping-p50", "ping-p99", "ping-p99.9"]
    assert report["rows"][0]["brokers"]["kafka"]["median"] > 0
    assert not list(tmp_path.glob("data-*"))


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stops_its_broker_and_removes_its_data(tmp_path, signal_number):
    bench = bench_command(tmp_path, "--only", "ping", "--rounds", "50")
    with subprocess.Popen(bench, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while "p99.9" not in running.stdout.readline():
            assert running.poll() is None
        children = psutil.Process(running.pid).children(recursive=True)
        os.kill(running.pid, signal_number)
        code = running.wait(120)

    assert code == 128 + signal_number
    assert not list(tmp_path.glob("data-*"))
    # A grandchild whose parent is gone may wait as a zombie for init to notice.
    assert not [
        child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    ]
