import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.pipelines import __main__ as command
from bench.pipelines.plan import FULL, QUICK, narrowed, topics_of
from bench.pipelines.rows import BATCH_ROWS, BUCKETS

ROOT = Path(__file__).parents[3]


def test_an_unknown_contest_is_refused_with_the_known_ones(tmp_path, capsys):
    code = command.main(["--quick", "--only", "nonsense", "--out", str(tmp_path / "out")])

    assert code == 1
    said = capsys.readouterr().err
    assert "no contest is called nonsense; there are archive, sqlite, postgresql" in said


@pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
def test_a_plans_rows_can_be_dealt_out(plan):
    assert plan.set_rows % (BUCKETS * BATCH_ROWS) == 0
    for rows, _ in topics_of(plan):
        assert rows % plan.set_rows == 0
    assert plan.memory_rows % plan.set_rows == 0


def test_memory_is_watched_over_twenty_million_rows():
    assert FULL.memory_rows >= 20_000_000


def test_what_one_contest_does_not_need_is_not_started():
    archive, growth = narrowed(FULL, ["archive"]), narrowed(FULL, ["growth"])

    assert (archive.databases, archive.growth, archive.memory_rows) == ((), (), 0)
    assert (growth.databases, growth.growth) == (("sqlite",), (1, 4, 16))
    assert narrowed(FULL, []) == FULL


def bench_command(out: Path) -> list[str]:
    words = [sys.executable, "-m", "bench.pipelines", "--quick", "--without-kafka"]
    words += ["--rows", "32000", "--warm-ups", "0", "--rounds", "1", "--out", str(out)]
    return [*words, "--only", "archive", "--only", "sqlite"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_short_run_writes_its_results_and_leaves_nothing_behind(tmp_path):
    answer = subprocess.run(bench_command(tmp_path), cwd=ROOT, capture_output=True, text=True)

    assert answer.returncode == 0, answer.stderr
    report = json.loads((tmp_path / "results.json").read_text())
    rates = {
        contestant["key"]: contestant["rows_per_second"]
        for contest in report["contests"]
        for contestant in contest["contestants"]
    }
    assert sorted(rates) == [
        "archive-headrace",
        "archive-plain",
        "copy",
        "sqlite-headrace",
        "sqlite-plain",
    ]
    assert min(rates.values()) > 0
    assert "table, fed by headrace" in (tmp_path / "results.md").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rates.png",
        "results.json",
        "results.md",
    ]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_an_interrupted_run_stops_its_servers_and_removes_its_data(tmp_path):
    with subprocess.Popen(
        bench_command(tmp_path),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        while "rows/s" not in running.stdout.readline():
            assert running.poll() is None
        others = psutil.Process(running.pid).children(recursive=True)
        os.killpg(running.pid, signal.SIGINT)
        code = running.wait(120)

    assert code == 130
    assert psutil.wait_procs(others, timeout=120)[1] == []
    assert not list(tmp_path.glob("data-*"))
