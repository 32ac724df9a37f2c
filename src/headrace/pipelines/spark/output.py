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

from headrace.errors import InvalidConfigError
from headrace.pipelines.errors import SparkError

if TYPE_CHECKING:
    from pyspark import SparkConf

# Begins the part of a log that belongs to the newest Java process.
START_MARK = "--- headrace starts Spark's Java ---"

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
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

    Settings go by a file that only we can read: pyspark would put them on two command lines, which
    everybody on the machine can see, and some are passwords. Java has read it when this returns.
    """
    from pyspark.java_gateway import launch_gateway

    with (
        _appending(log_file) as file,
        _in_memory(conf) as settings,
        _environment({**environment, _ARGUMENTS: _arguments(settings)}),
    ):
        file.write(f"{START_MARK}\n".encode())
        file.flush()
        options: dict[str, object] = {
            "stdout": file,
            "stderr": subprocess.STDOUT,
            "start_new_session": True,
            "pass_fds": (settings,),
        }
        return launch_gateway(None, options)  # type: ignore[no-untyped-call]


@contextmanager
def _in_memory(conf: "SparkConf") -> Iterator[int]:
    """A file without a name: it is gone with the last process that has it, however that ends."""
    lines = [f"{_escaped(name, name)}={_escaped(value, name)}\n" for name, value in conf.getAll()]
    with os.fdopen(os.memfd_create("headrace-spark-settings"), "wb") as file:
        file.write("".join(lines).encode("ascii"))
        file.flush()
        yield file.fileno()


def _escaped(text: str, name: str) -> str:
    """As a file of Java's properties has it: whatever is not plain, by its number."""
    try:
        units = text.encode("utf-16-be")
    except UnicodeEncodeError:
        # Without the value, which may be a password, and without the cause, which has it too.
        shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
        wanted = f"Spark's setting {shown}: write its name and value in UTF-8"
        raise InvalidConfigError(name, text, wanted) from None
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if _is_plain(chr(code)) else f"\\u{code:04x}" for code in codes)


def _is_plain(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter in "._-/,;$(){}[]*@+")


def _arguments(settings: int) -> str:
    # Spark's launcher reads the file and then Spark does: each opens it anew, from its beginning.
    # Spark's own defaults are read beside a file only if one asks for it.
    ours = f"--properties-file /proc/self/fd/{settings} --load-spark-defaults"
    return f"{ours} {os.environ.get(_ARGUMENTS, 'pyspark-shell')}"


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
