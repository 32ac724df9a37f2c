"""Runs as users start them: processes with a Java of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.pipelines.running.stage import committed, wait_until

from headrace.cli.connection import Connection
from headrace.cli.endings import EXIT_INTERRUPTED
from headrace.pipelines.running.run_state import (
    DIED,
    FAILED,
    RUNNING,
    STOPPED,
    read_run,
    stop_run,
)
from headrace.testing import RunningBroker, running_broker

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        connection = Connection(broker.bootstrap)
        connection.admin().create_topic("orders", 1)
        producer = connection.producer()
        for number in range(100):
            producer.produce("orders", str(number).encode())
        assert producer.flush(120) == 0
        yield broker


class Process:
    """One `headrace pipeline run archive`."""

    def __init__(self, bootstrap: str, directory: Path, *more: str) -> None:
        self.directory = directory
        self._popen = subprocess.Popen(
            [
                *(sys.executable, "-m", "headrace", "pipeline", "run", "archive"),
                *("--topic", "orders", "--to", "console:", "--bootstrap", bootstrap),
                *more,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "HEADRACE_STATE_DIR": str(directory)},
        )
        self.pid = self._popen.pid

    def wait_for_rows(self) -> None:
        wait_until(lambda: self.status_rows() == 100 or self._popen.poll() is not None, PATIENCE_S)
        assert self._popen.poll() is None

    def status_rows(self) -> int:
        status = read_run(self.directory, "archive")
        return 0 if status is None or status.progress is None else status.progress["rows"]

    def send(self, number: int) -> None:
        self._popen.send_signal(number)

    def end(self) -> tuple[int, bytes, bytes]:
        stdout, stderr = self._popen.communicate(timeout=PATIENCE_S)
        return self._popen.returncode, stdout, stderr


@pytest.fixture
def process(broker: RunningBroker, tmp_path: Path) -> Iterator[Process]:
    process = Process(broker.bootstrap, tmp_path)
    yield process
    if process._popen.poll() is None:
        process._popen.kill()
        process._popen.communicate()


def test_stop_ends_it_with_0_and_its_group_has_the_position(
    process: Process, broker: RunningBroker
) -> None:
    process.wait_for_rows()

    assert stop_run(process.directory, "archive", PATIENCE_S).state == STOPPED

    code, stdout, stderr = process.end()
    assert (code, len(stdout.splitlines())) == (0, 100), stderr
    assert b"WARN" not in stderr
    assert committed(Connection(broker.bootstrap).bus, "archive", "orders") == {0: 100}


def test_ctrl_c_ends_it_with_130(process: Process) -> None:
    process.wait_for_rows()

    process.send(signal.SIGINT)

    code, _, stderr = process.end()
    assert code == EXIT_INTERRUPTED, stderr
    assert b"Traceback" not in stderr
    status = read_run(process.directory, "archive")
    assert status is not None
    assert status.state == STOPPED


def test_a_run_that_is_killed_has_died_and_takes_its_java_along(process: Process) -> None:
    process.wait_for_rows()
    java = [each for each in psutil.Process(process.pid).children() if each.name() == "java"]
    assert java

    process.send(signal.SIGKILL)
    process.end()

    status = read_run(process.directory, "archive")
    assert status is not None
    assert (status.state, status.is_alive) == (DIED, False)
    assert not psutil.wait_procs(java, timeout=120)[1]


def test_a_run_whose_java_dies_says_so_and_ends(process: Process) -> None:
    process.wait_for_rows()
    assert read_run(process.directory, "archive").state == RUNNING  # type: ignore[union-attr]

    for each in psutil.Process(process.pid).children():
        each.kill()

    code, _, stderr = process.end()
    assert code == 1
    assert b"Traceback" not in stderr
    assert stderr.strip().splitlines()[-1].startswith(b"headrace: ")


def test_what_java_refuses_within_a_batch_is_a_sentence_and_the_run_has_failed(
    broker: RunningBroker, tmp_path: Path
) -> None:
    conf = "spark.sql.shuffle.partitions=many"

    code, _, stderr = Process(broker.bootstrap, tmp_path, "--conf", conf).end()

    assert code == 2, stderr
    assert b"Traceback" not in stderr
    assert b"the value 'many' in the config" in stderr.splitlines()[-1]
    status = read_run(tmp_path, "archive")
    assert status is not None
    assert status.state == FAILED
    assert "the value 'many'" in (status.message or "")
