"""What a killed test process leaves behind, each in a process of its own that is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import headrace
from headrace.process_lookup import process_of
from headrace.testing import janitor
from tools.databases import DatabaseServerError, find_mariadb, find_postgresql

ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join([str(Path(headrace.__file__).parents[1]), str(ROOT)])
PATIENCE_S = 180.0
MEMORY = Path("/dev/shm")

needs_memory = pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="no /dev/shm here")


def await_true(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def run_and_kill(tmp_path: Path, *command: str) -> list[str]:
    """Run Python until it has written `told`, kill it, and return the lines of that file."""
    told = tmp_path / "told"
    environment = {**os.environ, "PYTHONPATH": SOURCES, "TOLD": str(told)}
    with (
        (tmp_path / "output").open("wb") as output,
        subprocess.Popen(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=output,
        ) as process,
    ):
        await_true(lambda: told.exists() or process.poll() is not None)
        assert process.poll() is None, (tmp_path / "output").read_text("utf-8")
        process.kill()
    return told.read_text("utf-8").splitlines()


# The file is there with all its lines or not at all.
TELL = """
import os, signal
from pathlib import Path

def tell_and_wait(*lines):
    new = Path(os.environ["TOLD"] + ".new")
    new.write_text("\\n".join(map(str, lines)))
    new.rename(os.environ["TOLD"])
    signal.pause()
"""


def is_gone(pid: str) -> bool:
    try:
        return psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@needs_memory
@pytest.mark.parametrize("arguments", [[], ["-n", "1", "--dist", "loadfile"]])
def test_a_killed_pytest_leaves_nothing_in_memory_and_no_broker(
    tmp_path: Path, arguments: list[str]
) -> None:
    if arguments:
        pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(
        TELL
        + """
from headrace.testing import broker_process, running_broker

def test_it(headrace_broker, headrace_session_broker, tmp_path):
    with running_broker(in_memory=True) as third, broker_process(tmp_path / "data") as process:
        brokers = headrace_broker, headrace_session_broker, third
        directories = [broker.data_dir for broker in brokers]
        tell_and_wait(process.pid, process.stderr_path.parent, *directories)
""",
        "utf-8",
    )

    pid, log, *directories = run_and_kill(
        tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "-W", "default", *arguments
    )

    assert len(directories) == 3
    assert all(path.startswith(str(MEMORY)) for path in directories)
    await_true(lambda: is_gone(pid))
    await_true(lambda: not any(map(os.path.exists, [log, *directories])))


def test_databases_end_with_whoever_started_them_and_leave_no_shared_memory(
    tmp_path: Path,
) -> None:
    try:
        find_postgresql()
        find_mariadb()
    except DatabaseServerError as error:
        pytest.skip(str(error))
    program = f"""{TELL}
import psutil
from tools.databases import running_mariadb, running_postgresql

with running_postgresql() as one, running_mariadb() as other:
    directories = [str(server.directory) for server in (one, other)]
    pids = [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(each in word for word in process.info["cmdline"] or () for each in directories)
    ]
    maps = "".join(Path(f"/proc/{{pid}}/maps").read_text() for pid in pids)
    tell_and_wait(*directories, "/dev/shm" in maps, *pids)
"""

    first, second, shares_by_name, *pids = run_and_kill(tmp_path, "-c", program)

    assert len(pids) >= 2
    assert shares_by_name == "False"
    await_true(lambda: all(map(is_gone, pids)))
    await_true(lambda: not Path(first).exists() and not Path(second).exists())
    assert not {*pids} & shared_memory_makers()


def shared_memory_makers() -> set[str]:
    """The processes that made the segments of System V's shared memory there are."""
    _, *lines = Path("/proc/sysvipc/shm").read_text("utf-8").splitlines()
    return {line.split()[4] for line in lines}


def test_whatever_bears_a_mark_in_its_environment_ends(tmp_path: Path) -> None:
    program = f"""{TELL}
import subprocess, sys, uuid
from headrace.testing import janitor

os.environ["MARK"] = uuid.uuid4().hex
janitor.entrust("environment", f"MARK={{os.environ['MARK']}}")
deaf = "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"
child = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
tell_and_wait(child.pid)
"""

    (pid,) = run_and_kill(tmp_path, "-c", program)

    await_true(lambda: is_gone(pid))


def test_what_was_taken_back_is_left_alone(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from headrace.testing import janitor

kept, removed = Path("kept"), Path("removed")
for path in (kept, removed):
    path.mkdir()
with janitor.entrusted("directory", kept.absolute()):
    janitor.entrust("directory", removed.absolute())
"""
    environment = {**os.environ, "PYTHONPATH": SOURCES}

    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)

    assert (tmp_path / "kept").exists()
    assert not (tmp_path / "removed").exists()


def test_a_number_that_is_another_process_by_now_is_not_signalled() -> None:
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as stranger:
        janitor._end([janitor.CleanupTask("process", str(stranger.pid), "1")])

        assert stranger.poll() is None
        stranger.kill()


def test_a_process_that_does_not_heed_its_signal_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(janitor, "_GRACE_S", 0.1)
    code = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        started = process_of(deaf.pid).start

        janitor._end([janitor.CleanupTask("process", str(deaf.pid), started, signal.SIGTERM)])

        assert deaf.wait() == -signal.SIGKILL
