import subprocess

import pytest

from headrace.bench import build as building
from headrace.bench.build import build
from headrace.errors import BenchError


@pytest.mark.parametrize("program", ["replay", "rdk"])
def test_a_program_compiles_without_a_warning_and_is_built_once(tmp_path, monkeypatch, program):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(building, "_FLAGS", (*building._FLAGS, "-Werror", "-O1"))

    executable = build(program)
    built_ns = executable.stat().st_mtime_ns

    assert build(program) == executable
    assert executable.stat().st_mtime_ns == built_ns
    assert [path.name for path in (tmp_path / "bin").iterdir()] == [executable.name]


def test_without_a_compiler_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)

    with pytest.raises(BenchError, match="apt-get install gcc"):
        build("replay")

    assert list((tmp_path / "bin").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "give --produce or --fetch"),
        (["--produce", "/nonexistent"], "cannot open /nonexistent"),
        (["--produce", "/etc/passwd"], "is not a file of requests"),
    ],
)
def test_replay_refuses_what_it_cannot_do_with_a_sentence(arguments, complaint):
    answer = subprocess.run([build("replay"), *arguments], capture_output=True, text=True)

    assert answer.returncode == 1
    assert complaint in answer.stderr
