"""A Spark standalone cluster on this machine, for tests: a master and some workers.

    with spark_standalone(workers=2) as master_url:
        spark = open_session("test", master=master_url)

pyspark's wheel has no start scripts for these, only the classes. Each worker is a process and
starts an executor as another; all are gone when the block ends.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from headrace.java.installation import find_java
from headrace.kafka import process
from headrace.pipelines.errors import SparkError
from headrace.pipelines.spark.installation import check_pyspark
from headrace.testing.janitor import temporary_directory

HOST = "127.0.0.1"
_READY_TIMEOUT_S = 120
_STOP_GRACE_S = 20
_POLL_S = 0.05
_MASTER_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_READY = re.compile(r"Successfully registered with master")
_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = OUT
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = OUT
"""


@contextlib.contextmanager
def spark_standalone(
    workers: int = 2, cores: int = 1, memory: str = "1g", *, directory: Path | None = None
) -> Iterator[str]:
    """Run a master and `workers` workers; yields the master's URL once all are registered.

    Their logs and the executors' are in `directory`, which is kept if it was named.
    """
    check_pyspark()
    with contextlib.ExitStack() as stack:
        if directory is None:
            directory = stack.enter_context(temporary_directory("spark-"))
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "log4j2.properties").write_text(_LOG4J, "utf-8")
        port, page = process.free_ports(2)
        arguments = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
        master = _start("master.Master", arguments, directory / "master", stack)
        url = _await(master, directory / "master.log", _MASTER_READY)[1]
        started = []
        for number in range(workers):
            name = f"worker-{number}"
            limits = ["-c", str(cores), "-m", memory, "-d", str(directory / name)]
            arguments = ["--host", HOST, "--webui-port", "0", *limits, url]
            started.append((_start("worker.Worker", arguments, directory / name, stack), name))
        for running, name in started:
            _await(running, directory / f"{name}.log", _WORKER_READY)
        yield url


def _start(
    class_name: str, arguments: list[str], work: Path, stack: contextlib.ExitStack
) -> subprocess.Popen[bytes]:
    import pyspark

    log4j = f"-Dlog4j2.configurationFile={work.parent / 'log4j2.properties'}"
    small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    running = process.start(
        [
            Path(pyspark.__file__).parent / "bin" / "spark-class",
            f"org.apache.spark.deploy.{class_name}",
            *arguments,
        ],
        output=work.with_suffix(".log"),
        env={
            **os.environ,
            "JAVA_HOME": str(find_java().path.resolve().parents[1]),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f'{small} "{log4j}"',
            "SPARK_LAUNCHER_OPTS": small,
            "PYSPARK_PYTHON": sys.executable,
        },
    )
    stack.callback(process.stop, running, _STOP_GRACE_S)
    return running


def _await(
    running: subprocess.Popen[bytes], log_file: Path, ready: re.Pattern[str]
) -> re.Match[str]:
    """Wait for the line that says it serves."""
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while time.monotonic() < deadline:
        is_dead = running.poll() is not None
        if match := ready.search(log_file.read_text("utf-8", "replace")):
            return match
        if is_dead:
            break
        time.sleep(_POLL_S)
    raise SparkError(f"the Spark process did not start: {process.tail(log_file, 3)}", log_file)
