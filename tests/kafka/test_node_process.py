"""With a Python process in Java's place: who holds the lock, and who gets a signal."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.kafka.errors import NodeError
from headrace.kafka.node_process import NodeProcess, is_paused
from headrace.process_lookup import process_of

PATIENT = "import signal; signal.pause()"
STUBBORN = (
    "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
)


@pytest.fixture
def java(tmp_path):
    process = NodeProcess(tmp_path)
    yield process
    process.stop(grace_s=0)


def launch(java, code=PATIENT, **facts):
    command = [sys.executable, "-c", code, "kafka.Kafka", str(java.properties_file)]
    output = java.directory / "out"
    java.launch(command, lock=java.take_lock(), output=output, is_tied=True, **facts)
    assert java.child is not None
    return java.child


def test_nothing_runs_in_a_new_directory(java):
    assert java.find() is None
    assert not java.pause()
    assert not java.resume()
    assert java.stop(grace_s=0)


def test_a_second_one_is_refused_as_long_as_the_first_lives(java):
    child = launch(java)

    with pytest.raises(NodeError, match="another Kafka node runs in"):
        NodeProcess(java.directory).take_lock()
    child.kill()
    child.wait()

    launch(java)  # its end has set the directory free


def test_another_process_finds_it_by_number_and_start_time(java):
    child = launch(java, log_start=7)
    code = (
        "import sys; from pathlib import Path; from headrace.kafka.node_process import NodeProcess;"
        "java = NodeProcess(Path(sys.argv[1])); print(java.find().pid, java.facts()['log_start']);"
        "assert java.child is None; java.stop(grace_s=120)"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code, java.directory], capture_output=True, text=True, check=True
    )

    assert answer.stdout == f"{child.pid} 7\n"
    assert child.wait(120) == -signal.SIGTERM


def test_a_process_that_merely_has_its_number_is_never_signalled(java):
    child = launch(java)
    run_file = java.directory / "run.json"
    facts = json.loads(run_file.read_text())
    java.stop(grace_s=120)
    with subprocess.Popen([sys.executable, "-c", PATIENT]) as stranger:
        # As if the stranger had got the number of a node that is gone; not in the same hundredth
        # of a second, though, which is all that start times tell apart.
        if process_of(stranger.pid).start == facts["start"]:
            facts["start"] = str(int(facts["start"]) - 1)
        run_file.write_text(json.dumps({**facts, "pid": stranger.pid}))

        found, was_paused = java.find(), java.pause()
        java.stop(grace_s=0)
        was_spared = stranger.poll() is None
        stranger.kill()
    assert (found, was_paused, was_spared) == (None, False, True)
    assert child.returncode == -signal.SIGTERM


def test_one_whose_starter_was_killed_before_it_wrote_anything_down_is_found(java):
    child = launch(java)
    (java.directory / "run.json").unlink()

    found = java.find()

    assert found is not None
    assert found.pid == child.pid
    child.kill()
    child.wait()


def test_a_paused_one_is_known_and_still_stops_cleanly(java):
    child = launch(java)

    assert java.pause()
    found = java.find()
    assert found is not None
    assert is_paused(found)
    assert java.stop(grace_s=120)
    assert child.returncode == -signal.SIGTERM


def test_one_that_does_not_heed_sigterm_is_killed(java):
    child = launch(java, STUBBORN)
    while "deaf" not in Path(java.directory / "out").read_text():
        time.sleep(0.01)

    assert not java.stop(grace_s=0.1)
    assert child.returncode == -signal.SIGKILL


def test_one_that_is_not_tied_outlives_its_starter(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from headrace.kafka.node_process import NodeProcess\n"
        "java = NodeProcess(Path(sys.argv[1])); command = [sys.executable, '-c', sys.argv[2]]\n"
        "java.launch(command, lock=java.take_lock(), output=Path(sys.argv[1]) / 'out',"
        " is_tied=False)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path, PATIENT], check=True)
    java = NodeProcess(tmp_path)

    found = java.find()

    assert found is not None
    assert java.stop(grace_s=120)
    assert java.find() is None
