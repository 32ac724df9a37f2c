import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import machine
from bench.baseline import ROOT, build_commit, environment_of, find_commit
from bench.errors import BenchError

pytestmark = pytest.mark.skipif(
    not shutil.which("git") or not (ROOT / ".git").exists(), reason="needs a git checkout"
)


def git(directory: Path, *words: str) -> str:
    name = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    answer = subprocess.run(
        ["git", *name, *words], cwd=directory, capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose first commit says 1 and whose second says 2, both without a C part."""
    root = tmp_path / "checkout"
    package = root / "src" / "headrace"
    package.mkdir(parents=True)
    git(root, "init", "-q")
    (root / "pyproject.toml").write_text("[project]\nname = 'headrace'\nversion = '0'\n")
    for number in (1, 2):
        (package / "__init__.py").write_text(f"NUMBER = {number}\n")
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", f"says {number}")
    return root


def test_a_commit_is_built_as_it_was_and_python_takes_it_from_there(
    checkout, tmp_path, monkeypatch
):
    monkeypatch.setattr(machine, "has_accelerator", lambda: False)
    commit = find_commit("HEAD~1", checkout)

    directory = build_commit(commit, tmp_path / "built", checkout)
    said = subprocess.run(
        [sys.executable, "-c", "import headrace; print(headrace.NUMBER)"],
        env=environment_of(directory),
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert (commit.revision, commit.subject) == ("HEAD~1", "says 1")
    assert commit.commit_id == git(checkout, "rev-parse", "HEAD~1")
    assert said == "1\n"
    # Git is told nothing, so a killed run leaves nothing to it either.
    assert len(git(checkout, "worktree", "list").splitlines()) == 1
    assert git(checkout, "status", "--porcelain") == ""


def test_a_baseline_that_would_be_slow_for_want_of_its_c_part_is_refused(
    checkout, tmp_path, monkeypatch
):
    monkeypatch.setattr(machine, "has_accelerator", lambda: True)

    with pytest.raises(BenchError, match="HEAD has no C accelerator and now has one"):
        build_commit(find_commit("HEAD", checkout), tmp_path / "built", checkout)


@pytest.mark.parametrize("revision", ["no-such-branch", "--all", "HEAD:src"])
def test_an_unknown_revision_is_refused_before_anything_is_built(tmp_path, capsys, revision):
    assert command.main([f"--baseline={revision}", "--out", str(tmp_path / "out")]) == 1

    said = capsys.readouterr().err
    assert f"--baseline {revision}: git knows no such commit; name a branch" in said
    assert not (tmp_path / "out").exists()


def test_ctrl_c_leaves_nothing_of_what_was_built(tmp_path, monkeypatch):
    found = []

    def interrupt(drivers, workloads, plan, directory, say, **options):
        found.extend(directory.glob("source/src/headrace/__init__.py"))
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_rounds", interrupt)
    monkeypatch.setattr(command, "QUICK", replace(command.QUICK, disk_bytes=0, touched_bytes=0))

    assert command.main(["--quick", "--baseline", "HEAD", "--out", str(tmp_path / "out")]) == 130
    assert len(found) == 1
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(("words", "is_in"), [([], False), (["--baseline", "HEAD"], True)])
def test_groups_are_asked_about_beside_a_baseline_even_if_it_is_quick(
    tmp_path, monkeypatch, words, is_in
):
    names = []

    def note(drivers, workloads, *rest, **options):
        names.extend(workload.name for workload in workloads)
        raise BenchError("seen")

    monkeypatch.setattr(command, "run_rounds", note)
    monkeypatch.setattr(command, "QUICK", replace(command.QUICK, disk_bytes=0, touched_bytes=0))

    assert command.main(["--quick", *words, "--out", str(tmp_path)]) == 1
    assert ("groups" in names) is is_in


def test_this_commit_beside_itself_takes_turns_and_says_what_came_of_it(
    tmp_path, monkeypatch, capsys
):
    small = replace(command.QUICK, disk_bytes=0, touched_bytes=0, warm_up_seconds=0.1)
    monkeypatch.setattr(command, "QUICK", small)
    words = ["--quick", "--baseline", "HEAD", "--only", "small-16x1", "--seconds", "0.2"]

    assert command.main([*words, "--rounds", "2", "--out", str(tmp_path)]) == 0

    said = capsys.readouterr().out
    brokers = [line.rpartition("(")[2] for line in said.splitlines() if "msg/s (" in line]
    assert brokers == ["baseline)", "headrace)", "headrace)", "baseline)"]
    report = json.loads((tmp_path / "baseline.json").read_text())
    assert report["baseline"]["commit_id"] == git(ROOT, "rev-parse", "HEAD")
    assert report["rounds"] == 2
    row = report["rows"][0]
    assert (row["key"], row["verdict"]) == ("small-16x1", "too few rounds")
    assert len(row["baseline"]["samples"]) == len(row["now"]["samples"]) == 2
    assert 0 < row["ratio"]["lowest"] <= row["ratio"]["median"] <= row["ratio"]["highest"]
    assert row["cpu_ratio"]["rounds"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["baseline.json"]
