import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from demo import __main__ as command
from demo.comparison import DifferenceError
from demo.run import DemoRun
from headrace.testing import broker_process

ROOT = Path(__file__).parents[2]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its directory."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return directory


def test_answers_that_differ_fail_the_demo_and_leave_its_directory(
    temporary, tmp_path, monkeypatch, capsys
):
    def differ(demo: DemoRun) -> None:
        raise DifferenceError("records: the answers differ: topic 2, lake 3")

    monkeypatch.setattr(DemoRun, "run", differ)

    assert command.main(["--plot", str(tmp_path / "rates.png")]) == 1
    said = capsys.readouterr().err
    assert "topic 2, lake 3" in said
    (left,) = temporary.iterdir()
    assert str(left) in said


def test_the_demo_leaves_nothing_when_it_ends_by_ctrl_c(temporary, tmp_path, monkeypatch):
    def end(demo: DemoRun) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DemoRun, "run", end)

    assert command.main(["--plot", str(tmp_path / "rates.png")]) == 130
    assert list(temporary.iterdir()) == []


def test_a_demo_that_ended_well_keeps_its_data_with_the_results_and_knows_how_long_it_took(
    temporary, tmp_path, monkeypatch, capsys
):
    results = tmp_path / "results"

    def leave(demo: DemoRun) -> None:
        (directory,) = temporary.iterdir()
        for name in ("broker", "lake", "state"):
            (directory / name).mkdir()
        (directory / "readings.db").touch()

    monkeypatch.setattr(DemoRun, "run", leave)

    codes = [command.main(["--plot", str(results / "rates.png")]) for _ in range(2)]

    said = capsys.readouterr().out
    assert codes == [0, 0]
    assert list(temporary.iterdir()) == []
    kept = {path.name for path in (results / "data").iterdir()}
    assert kept == {"broker", "lake", "readings.db"}
    assert f"serve --data-dir {results}/data/broker" in said
    assert re.search(r"^this takes about [\d.]+ (s|minutes?) on this machine", said)
    assert "the last time it took 0 s on this machine" in said


def demo(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "demo", "--seconds", "5", "--rate", "400"]
    plot = str(tmp_path / "results" / "rates.png")
    return subprocess.Popen(
        [*words, "--plot", plot, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        # A terminal's Ctrl-C goes to the whole group; so does the test's.
        start_new_session=True,
    )


def lines_until(running: subprocess.Popen[str], words: str) -> list[str]:
    """What it says up to a line with these words."""
    assert running.stdout is not None
    lines = []
    for line in running.stdout:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError("".join(lines))


def commands_in(text: str) -> list[list[str]]:
    """The commands it names for the user, those of its own pipelines too."""
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    commands = [shlex.split(line) for line in lines if "headrace " in line or "sqlite3 " in line]
    return [words for words in commands if shutil.which(words[0])]


def interrupt(running: subprocess.Popen[str]) -> str:
    """Ctrl-C; return the rest of the output after checking that nobody is left."""
    others = psutil.Process(running.pid).children(recursive=True)
    os.killpg(running.pid, signal.SIGINT)
    rest = running.communicate(timeout=180)[0]
    assert psutil.wait_procs(others, timeout=120)[1] == []
    return rest


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_the_whole_demo_ends_by_itself_with_equal_counts_and_a_picture(temporary, tmp_path):
    with demo(tmp_path) as running:
        said = running.communicate(timeout=500)[0]

    assert running.returncode == 0, said
    assert "every answer is the same everywhere" in said
    assert "not JSON" in said
    assert "\x1b[" not in said
    assert (tmp_path / "results" / "rates.png").read_bytes().startswith(b"\x89PNG")
    assert list(temporary.iterdir()) == []
    with broker_process(tmp_path / "results" / "data" / "broker") as broker:
        environment = {**os.environ, "HEADRACE_BOOTSTRAP": broker.bootstrap}
        for line in commands_in(said.partition("are kept in")[2]):
            if line[1] != "serve":
                looked = subprocess.run(line, capture_output=True, text=True, env=environment)
                assert looked.returncode == 0, (line, looked.stderr)
                assert looked.stdout


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_ctrl_c_while_the_feed_runs_ends_everything(temporary, tmp_path):
    with demo(tmp_path, "--seconds", "600") as running:
        lines_until(running, "the sensors send, the pipelines follow")
        rest = interrupt(running)

    assert running.returncode == 130, rest
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_kept_demo_can_be_looked_at_with_the_commands_it_names(temporary, tmp_path):
    with demo(tmp_path, "--keep") as running:
        said = lines_until(running, "Ctrl-C ends it")
        commands = commands_in("".join(said))
        looks = [words for words in commands if words[1:3] != ["pipeline", "run"]]
        answers = {}
        for words in looks:
            if words[1] not in ("top",):
                answers[shlex.join(words[1:3])] = subprocess.run(
                    words, capture_output=True, text=True, timeout=200
                )
        rest = interrupt(running)

    assert running.returncode == 130, rest
    assert len(answers) >= 4
    for words, answer in answers.items():
        assert answer.returncode == 0, (words, answer.stderr)
    assert "running" in answers["pipeline status"].stdout
    assert list(temporary.iterdir()) == []
