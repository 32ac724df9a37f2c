"""Commands as processes, for what only a process can show: signals, pipes, exit codes."""

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import headrace

_SOURCES = str(Path(headrace.__file__).parents[1])
PATIENCE_S = 180.0


@contextmanager
def headrace_process(
    bootstrap: str,
    *words: object,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator["subprocess.Popen[bytes]"]:
    """`headrace WORDS…` with its output in pipes; killed when the test is done with it."""
    environment = {
        **({**os.environ, "NO_COLOR": "1"} if environment is None else environment),
        "HEADRACE_BOOTSTRAP": bootstrap,
        "PYTHONPATH": _SOURCES,
    }
    command = [sys.executable, "-m", "headrace", *map(str, words)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(command, stdin=stdin, env=environment, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def read_lines(stream: IO[bytes] | None, count: int) -> list[str]:
    """The next lines of a pipe; fails when they do not come."""
    assert stream is not None
    found, pending = list[str](), b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while len(found) < count:
            assert selector.select(PATIENCE_S), f"after {found} nothing came"
            # A byte at a time: what comes behind the last line stays in the pipe.
            byte = os.read(stream.fileno(), 1)
            assert byte, f"after {found} the pipe was closed"
            pending += byte
            if byte == b"\n":
                found.append(pending.decode().rstrip("\n"))
                pending = b""
    return found


def read_until(stream: IO[bytes] | None, text: str) -> str:
    """All lines of a pipe up to the one with this text in it."""
    lines = read_lines(stream, 1)
    while text not in lines[-1]:
        lines += read_lines(stream, 1)
    return "\n".join(lines)


def end_of(process: "subprocess.Popen[bytes]") -> tuple[int, str, str]:
    """Wait until it ends by itself: exit code, and the rest of stdout and stderr."""
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    return process.returncode, (stdout or b"").decode(), (stderr or b"").decode()
