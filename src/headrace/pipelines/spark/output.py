"""Where Java's own output goes: a log file, never the terminal our own view is drawn on.

The Java process starts with both its outputs in the file, and so do the Python workers it
starts. Our own terminal is not touched, so that nothing of ours can get lost meanwhile.
"""

import logging
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import platformdirs

from headrace.errors import SparkError

if TYPE_CHECKING:
    from pyspark import SparkConf

# Begins the part of a log that belongs to the newest Java process.
START_MARK = "--- headrace starts Spark's Java ---"

_LOG4J_FILE = Path(__file__).with_name("log4j2.properties")
STOP_TIMEOUT_S = 30


def default_log_file() -> Path:
    """Where a session logs that was given no file: in HEADRACE_STATE_DIR, or the platform's."""
    state = os.environ.get("HEADRACE_STATE_DIR") or platformdirs.user_state_dir("headrace")
    return Path(state) / "spark.log"


def log_flags(log_file: Path) -> list[str]:
    """Return the Java flags that send Spark's log to `log_file`."""
    return [f"-Dlog4j2.configurationFile={_LOG4J_FILE}", f"-Dheadrace.log={log_file}"]


def launch_java(conf: "SparkConf", log_file: Path, environment: Mapping[str, str | None]) -> Any:
    """Start Spark's Java process with its output in `log_file`; return py4j's gateway to it.

    It is a session of its own, so that a signal to our process group reaches only us and we end
    the batch in order. It ends with us in any case: its standard input is a pipe from us.
    """
    from pyspark.java_gateway import launch_gateway

    with _appending(log_file) as file, _environment(environment):
        file.write(f"{START_MARK}\n".encode())
        file.flush()
        options: dict[str, object] = {
            "stdout": file,
            "stderr": subprocess.STDOUT,
            "start_new_session": True,
        }
        return launch_gateway(conf, options)  # type: ignore[no-untyped-call]


def _appending(log_file: Path) -> BinaryIO:
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        return log_file.open("ab")
    except OSError as error:
        raise SparkError(
            f"cannot write Spark's log {log_file}: {error.strerror}; set HEADRACE_STATE_DIR to a "
            "directory that can be written"
        ) from error


def log_py4j(log_file: Path) -> None:
    """Send what py4j logs there too: it logs a traceback of all it raises, and of all we raise."""
    logger = logging.getLogger("py4j")
    for handler in list(logger.handlers):
        if isinstance(handler, WatchedFileHandler):
            logger.removeHandler(handler)
            handler.close()
    # Watched: Java renames the file when it has grown large.
    logger.addHandler(WatchedFileHandler(log_file, delay=True))
    logger.propagate = False


def end_java(gateway: Any, timeout_s: float) -> None:
    """End the Java process and wait for it, then by force: what it leaves behind is complete."""
    process: subprocess.Popen[bytes] | None = gateway.proc
    gateway.shutdown()
    if process is None:
        return
    if process.stdin:
        process.stdin.close()  # Spark's Java ends when this pipe does
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables, or take them away, for a process started within: pyspark passes on ours."""
    before = {name: os.environ.get(name) for name in changes}
    _set_variables(changes)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
