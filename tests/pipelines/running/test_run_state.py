import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.pipelines.errors import RunError
from headrace.pipelines.running.lock import Lock
from headrace.pipelines.running.run_state import (
    DIED,
    FINISHED,
    RUNNING,
    STARTING,
    RunDirectory,
    all_runs,
    find_run,
    stop_run,
)
from headrace.process_lookup import Process, process_of

SLEEP = "import time; time.sleep(600)"
DEAF = "import signal, time; signal.signal(15, lambda *_: None); print(flush=True); time.sleep(600)"
# Holds a lock and says so.
HOLDER = """
import sys, time
from pathlib import Path
from headrace.pipelines.running.lock import Lock
Lock(Path(sys.argv[1]), what="it", run_name="holder").add_java(int(sys.argv[2]))
print(flush=True)
time.sleep(600)
"""


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", SLEEP])
    yield process
    process.kill()
    process.wait()


def a_run(directory: Path, process: Process, state: str = RUNNING) -> RunDirectory:
    run = RunDirectory(directory, "r")
    run.begin({"pipeline": "p", "sinks": []}, process)
    run.update(state, None, {"rows": 5})
    return run


def test_a_run_that_lives_is_as_it_says(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "r")
    run.begin({"pipeline": "p"})
    assert find_run(tmp_path, "r").state == STARTING
    run.update(RUNNING, "well", {"rows": 5})

    (status,) = all_runs(tmp_path)

    assert (status.state, status.is_alive, status.message) == (RUNNING, True, "well")
    assert status.as_json()["pipeline"] == "p"
    assert [path.name for path in run.path.iterdir()] != []


def test_a_run_whose_process_is_gone_has_died(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    a_run(tmp_path, process_of(sleeper.pid))
    assert find_run(tmp_path, "r").is_alive
    sleeper.kill()
    sleeper.wait()

    status = find_run(tmp_path, "r")

    assert (status.state, status.is_alive) == (DIED, False)


def test_a_process_that_got_the_number_of_a_dead_run_is_not_taken_for_it(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    a_run(tmp_path, Process(sleeper.pid, "1"))

    with pytest.raises(RunError, match="run r does not run: it died"):
        stop_run(tmp_path, "r")
    assert sleeper.poll() is None


def test_a_run_is_stopped_by_its_process(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    a_run(tmp_path, process_of(sleeper.pid))

    stop_run(tmp_path, "r", timeout_s=120)

    assert sleeper.wait(120) == -15


def test_a_run_that_takes_longer_is_told(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        a_run(tmp_path, process_of(process.pid))
        try:
            with pytest.raises(RunError, match=r"has not ended within 0.2 s.*--timeout"):
                stop_run(tmp_path, "r", timeout_s=0.2)
        finally:
            process.kill()


def test_a_run_that_ended_cannot_be_stopped(tmp_path: Path) -> None:
    a_run(tmp_path, process_of(), FINISHED)

    with pytest.raises(RunError, match="run r does not run: it finished"):
        stop_run(tmp_path, "r")


def test_a_run_that_never_was_is_told_with_those_that_were(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run is called q; there is none at all"):
        find_run(tmp_path, "q")
    a_run(tmp_path, process_of())
    with pytest.raises(RunError, match="no run is called q; there are r in"):
        find_run(tmp_path, "q")


def test_a_lock_has_one_owner_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "lock"
    with Lock(path, what="it", run_name="first"):
        pid = process_of().pid
        with pytest.raises(RunError, match=rf"it is in use by run first \(process {pid}\)"):
            Lock(path, what="it", run_name="second")
    Lock(path, what="it", run_name="second").close()


def test_the_java_of_an_owner_that_was_killed_is_waited_for(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path), str(sleeper.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
    monkeypatch.setattr("headrace.pipelines.running.lock.ORPHAN_TIMEOUT_S", 0.2)

    with pytest.raises(RunError, match=f"Java process {sleeper.pid} of a run that died"):
        Lock(path, what="it", run_name="next")
    sleeper.kill()
    sleeper.wait()
    Lock(path, what="it", run_name="next").close()


def test_a_lock_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(RunError, match=r"it: cannot write .*file.*; choose a directory"):
        Lock(tmp_path / "file" / "lock", what="it", run_name="r")
