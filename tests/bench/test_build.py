import subprocess
import sys
import time

import pytest

from bench import build as building
from bench.build import build, build_library
from bench.errors import BenchError


@pytest.mark.parametrize("program", ["replay", "rdk", "beat", "ping"])
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
        (["--produce", "/nonexistent/file"], "cannot open /nonexistent/file"),
        (["--produce", "/etc/passwd"], "is not a file of requests"),
    ],
)
def test_replay_refuses_what_it_cannot_do_with_a_sentence(arguments, complaint):
    answer = subprocess.run([build("replay"), *arguments], capture_output=True, text=True)

    assert answer.returncode == 1
    assert complaint in answer.stderr


def test_a_library_slows_the_syncs_of_whoever_preloads_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "cache"))
    synced = "import os; os.fdatasync(os.open(os.environ['FILE'], os.O_RDWR | os.O_CREAT))"
    environment = {
        "LD_PRELOAD": str(build_library("slow_disk")),
        "SLOW_DISK_MS": "700",
        "FILE": str(tmp_path / "file"),
    }

    began_at = time.monotonic()
    subprocess.run([sys.executable, "-c", synced], env=environment, check=True)

    assert time.monotonic() - began_at > 0.7  # it waits, however fast the machine is
