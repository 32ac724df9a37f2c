"""The example in each command's help runs as it stands, in a shell, against a broker."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.test_docs import COMMANDS

from headrace.cli.connection import Connection
from headrace.cli.endings import EXIT_INTERRUPTED
from headrace.java.jars import cache_directory
from headrace.kafka.cluster import Cluster
from headrace.kafka.process import free_ports
from headrace.pipelines.running.run_state import RUNNING, RunDirectory
from headrace.process_lookup import process_of
from headrace.testing import RunningBroker, running_broker

# These go on until they are told to stop; the test does so after their first line.
ENDLESS = {"headrace serve", "headrace top"}
# These start a Java process, which takes its time; one stands for all in `make test`.
SPARK_STARTERS = {
    "headrace pipeline run": [pytest.mark.spark],
    "headrace pipeline setup": [pytest.mark.spark, pytest.mark.slow],
    "headrace sql": [pytest.mark.spark, pytest.mark.slow],
}
# These need a cluster of three nodes, or make one: each is a Java process.
KAFKA_COMMANDS = {
    name: [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1800)]
    for name in COMMANDS
    if name.startswith("headrace kafka ") and name != "headrace kafka list"
}


@pytest.fixture(scope="module")
def kafka_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where clusters lie, in this module all of them; none is left at the end."""
    directory = tmp_path_factory.mktemp("clusters")
    yield directory
    for path in directory.glob("*/cluster.json"):
        Cluster.open(path.parent).destroy()


def prepare_cluster(name: str, kafka_dir: Path) -> None:
    """Let the cluster `default` run, whole or as the command wants it; `up` makes its own."""
    directory = kafka_dir / "default"
    is_there = (directory / "cluster.json").exists()
    if name == "headrace kafka up":
        return
    cluster = Cluster.open(directory) if is_there else Cluster.create(directory, brokers=3)
    for node in cluster.nodes:
        if node.state == "paused":
            node.resume()
    cluster.up(300)
    if name == "headrace kafka start":
        cluster.node(2).stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker on ~/.local/share/headrace of a home of its own."""
    with running_broker(tmp_path / ".local/share/headrace") as broker:
        yield broker


def prepare(broker: RunningBroker) -> None:
    """Make what the examples speak of: two topics, and the group billing that reads orders."""
    connection = Connection(broker.bootstrap, timeout_s=120)
    admin = connection.admin()
    producer = connection.producer()
    for topic in ("orders", "greetings"):
        admin.create_topic(topic, 3)
        for number in range(30):
            producer.produce(topic, b'{"number": %d}' % number, partition=number % 3)
    assert producer.flush(120) == 0
    admin.set_group_offsets("billing", {("orders", number): 5 for number in range(3)})


def run_example(
    example: str, broker: RunningBroker, home: Path, kafka_dir: Path, *, is_endless: bool
) -> tuple[int, str]:
    """Run it in a shell where `headrace` is this source tree; return exit code and stderr."""
    script = f'headrace() {{ {"exec " if is_endless else ""}"$PYTHON" -m headrace "$@"; }}\n'
    process = subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", script + example],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=broker.data_dir,
        env={
            **os.environ,
            "PYTHON": sys.executable,
            "HOME": str(home),
            "HEADRACE_BOOTSTRAP": broker.bootstrap,
            "HEADRACE_STATE_DIR": str(home / "state"),
            "HEADRACE_KAFKA_DIR": str(kafka_dir),
            # Spark's jars are fetched once, not into every home.
            "HEADRACE_CACHE_DIR": str(cache_directory()),
        },
    )
    with process:
        assert process.stdout is not None
        if is_endless:
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    return process.returncode, stderr.decode()


@contextmanager
def a_run(state_dir: Path, name: str) -> Iterator[None]:
    """A process that passes for a run of this name until it is told to end."""
    with subprocess.Popen(["sleep", "600"]) as process:
        directory = RunDirectory(state_dir, name)
        directory.begin({"pipeline": name, "sinks": []}, process_of(process.pid))
        directory.update(RUNNING)
        try:
            yield
        finally:
            process.kill()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=(SPARK_STARTERS | KAFKA_COMMANDS).get(name, []))
        for name in sorted(COMMANDS)
    ],
)
def test_the_example_of_a_command_runs(
    name: str, broker: RunningBroker, tmp_path: Path, kafka_dir: Path
) -> None:
    epilog = COMMANDS[name].epilog or ""
    example = epilog.removeprefix("Example: ")
    if name == "headrace serve":
        (port,) = free_ports(1)
        # Its own port may be taken here, and its data directory is that of the fixture.
        example = re.sub(r"--port \d+", f"--port {port}", example) + f" --data-dir {tmp_path}/other"
    elif name in KAFKA_COMMANDS:
        prepare_cluster(name, kafka_dir)
    elif name != "headrace topics create":
        prepare(broker)
    if name == "headrace log verify":
        broker.stop()  # what a running broker writes might be taken for a torn tail

    with ExitStack() as stack:
        if name == "headrace mirror":
            other = stack.enter_context(running_broker(in_memory=True))
            example = example.replace("127.0.0.1:9092", broker.bootstrap)
            example = example.replace("127.0.0.1:19092", other.bootstrap)
        if name == "headrace pipeline stop":
            stack.enter_context(a_run(tmp_path / "state", "archive"))
        code, stderr = run_example(example, broker, tmp_path, kafka_dir, is_endless=name in ENDLESS)

    assert code in ((0, EXIT_INTERRUPTED) if name in ENDLESS else (0,)), stderr
    assert "Traceback" not in stderr
