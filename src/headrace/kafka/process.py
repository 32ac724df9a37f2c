"""Child processes that are never left behind, unless they are meant to be.

A child runs in its own session, so that Ctrl-C reaches only us and we stop it in
order. When it was started from the main thread the kernel ends it with us even if
we are killed; from another thread that would end it with the thread, so not then.
"""

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
# Services that everybody knows are below it.
_FIRST_PORT = 10_240
_PORTS_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LIBC = ctypes.CDLL(None, use_errno=True)


def start(
    command: Sequence[str | Path],
    *,
    output: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
    is_tied: bool = True,
) -> subprocess.Popen[bytes]:
    """Start `command` with both its outputs appended to the file `output`.

    With `is_tied` false it outlives us.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    with output.open("ab") as file:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
            preexec_fn=_end_with_parent if is_tied and is_main_thread else None,
        )


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def stop(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """Ask with SIGTERM, insist with SIGKILL after `grace_s`; return the exit code."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def tail(path: Path, lines: int = 15) -> str:
    """Return the last lines of a log, for an error message."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 16 * 1024))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])
    return ""


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return ports nobody listens on now, all different.

    A node takes seconds until it listens: no connection is given one of them meanwhile.
    """
    numbers = range(_FIRST_PORT, _first_port_of_connections())
    found = list[int]()
    with contextlib.ExitStack() as stack:
        for number in random.sample(numbers, min(100 * count, len(numbers))):
            if len(found) == count:
                break
            listener = stack.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                listener.bind((host, number))
                found.append(number)
        while len(found) < count:  # a machine that gives nearly all ports to connections
            listener = stack.enter_context(socket.socket())
            listener.bind((host, 0))
            found.append(int(listener.getsockname()[1]))
    return found


def _first_port_of_connections() -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(_PORTS_OF_CONNECTIONS.read_text("ascii").split()[0])
    return _FIRST_PORT
