import contextlib
import io
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headrace.pipelines.errors import RunError
from headrace.pipelines.running.metrics import serve_metrics
from headrace.pipelines.running.progress import PartitionProgress, RunProgress
from headrace.pipelines.running.reporting import Reporter, View
from headrace.pipelines.running.run_state import FAILED, FINISHED, RUNNING, WAITING, RunDirectory
from headrace.pipelines.running.settings import RunSettings
from headrace.pipelines.running.view import LineView, LiveView, duration_text, view_for

FACTS = {"pipeline": "p", "source": "topic t", "bootstrap": "b:1", "sinks": ["here", "there"]}


def some_progress() -> RunProgress:
    progress = RunProgress(started_at=0, batches=1, rows=7, batch_id=0, batch_rows=7, batch_s=1.0)
    progress.partitions = [PartitionProgress("t", 0, 7, 9)]
    return progress


def test_lines_tell_what_changed_and_not_the_same_again() -> None:
    stream = io.StringIO()
    view = LineView(stream)

    view.begin(FACTS)
    view.show(RUNNING, None, some_progress())
    view.show(RUNNING, None, some_progress())
    view.tell("something happened")
    view.show(WAITING, "bus unreachable since 10:00:00 UTC", some_progress())
    view.end(FINISHED, None, some_progress())

    lines = stream.getvalue().splitlines()
    assert lines[:5] == [
        "headrace: p: topic t at b:1 → here, there",
        "headrace: p: running",
        "headrace: p: 7 rows · 7 rows/s · batch 0 in 1.0 s · lag 2",
        "headrace: something happened",
        "headrace: p: waiting for the bus, bus unreachable since 10:00:00 UTC",
    ]
    assert lines[5].startswith("headrace: p: finished; 7 rows in 1 batch, ")
    assert len(lines) == 6


def test_a_quiet_view_tells_and_shows_no_figures() -> None:
    stream = io.StringIO()
    view = view_for(stream, is_plain=True, is_quiet=True)

    view.begin(FACTS)
    view.show(RUNNING, None, some_progress())
    view.tell("something happened")
    view.end(FINISHED, None, some_progress())

    assert stream.getvalue() == "headrace: something happened\n"


def test_a_live_view_draws_the_partitions_on_its_own_stream_wherever_stderr_goes() -> None:
    stream, log = io.StringIO(), io.StringIO()
    view = LiveView(stream)

    with contextlib.redirect_stderr(log):
        view.begin(FACTS)
        view.show(RUNNING, None, some_progress())
        view.tell("something [happened]")
        print("a library's traceback", file=sys.stderr)
        view.end(FAILED, "it broke", some_progress())

    shown = stream.getvalue()
    assert log.getvalue() == "a library's traceback\n"
    assert "something [happened]" in shown
    assert "lag 2" in shown
    assert "partition" in shown


@pytest.mark.parametrize(
    ("seconds", "text"), [(42, "42 s"), (200, "3 min 20 s"), (18060, "5 h 1 min")]
)
def test_durations_are_for_people(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


def test_metrics_are_served_while_the_run_runs(tmp_path: Path) -> None:
    reporter = Reporter(RunDirectory(tmp_path, "r"), View(), FACTS)
    reporter.progress.rows = 12
    settings = RunSettings(name="r", state_dir=tmp_path, metrics_port=0)

    with serve_metrics(settings, reporter) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other")
        refused.value.close()
        taken = RunSettings(name="s", state_dir=tmp_path, metrics_port=port)
        with (
            pytest.raises(RunError, match=f"metrics port {port} cannot be opened"),
            serve_metrics(taken, reporter),
        ):
            pass

    assert "# TYPE headrace_pipeline_rows_total counter\n" in text
    assert 'headrace_pipeline_rows_total{pipeline="r"} 12\n' in text
    assert 'headrace_pipeline_up{pipeline="r"} 0\n' in text
    assert "headrace_uptime_seconds" in text


def test_what_is_told_is_kept_with_its_time(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "r")

    Reporter(directory, View(), FACTS).tell("something happened")

    assert directory.told_file.read_text().endswith("+00:00 something happened\n")
