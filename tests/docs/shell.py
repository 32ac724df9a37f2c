"""One shell for a page: an empty directory, a home of its own and the ports as written.

The page has the network to itself where the system lets us make a namespace, so that port 9092 is
free however many tests run side by side; elsewhere 9092 is replaced by a free port throughout.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.docs.pages import Block

import headrace
from headrace.java.jars import cache_directory
from headrace.kafka.process import free_ports

ROOT = Path(__file__).parents[2]
PATIENCE_S = 1500
_SOURCES = str(Path(headrace.__file__).parents[1])
_DEFAULT_PORT = "9092"
# Processes of its own too: what a page leaves behind, a node of Kafka's say, ends with its shell.
_OWN_NETWORK = ("unshare", "--map-root-user", "--net", "--pid", "--mount-proc", "--kill-child")

# `in_background COMMAND`: starts it with a process group of its own, so that Ctrl-C at the end is
# for it alone, and waits for its first words. At the end each must still run, or have ended well;
# the first, which is the broker, ends last.
_PROLOGUE = r"""
set -eo pipefail
running=()
trap 'code=$?; echo "stumbled: exit code $code of: $BASH_COMMAND" >&2' ERR
in_background() {
    local log="$LOGS/background-${#running[@]}" patience=150
    set -m
    { eval "$1"; } >"$log" 2>&1 </dev/null &
    running+=($!)
    set +m
    until [ -s "$log" ] || ! kill -0 $! 2>/dev/null || [ $((patience--)) = 0 ]; do sleep 0.1; done
    head -c 2000 "$log"
}
end_last() {
    local pid="${running[-1]}" code=0
    unset "running[-1]"
    kill -INT -- "-$pid" 2>/dev/null || true
    wait "$pid" || code=$?
    case $code in 0 | 130) ;; *) echo "a command in the background ended with $code:" >&2
        cat "$LOGS/background-${#running[@]}" >&2; return 1 ;; esac
}
end_background() {
    while [ ${#running[@]} != 0 ]; do end_last; done
}
"""


class Shell:
    """Runs blocks in a directory of `directory`'s; with a network of its own where that can be."""

    def __init__(self, directory: Path, *, is_own_network: bool | None = None) -> None:
        self._own = can_make_network() if is_own_network is None else is_own_network
        self.work, self._bin = directory / "work", directory / "bin"
        self._home, self._logs = directory / "home", directory / "logs"
        for each in (self.work, self._bin, self._home, self._logs):
            each.mkdir()
        self._port, http_port = (_DEFAULT_PORT, None) if self._own else map(str, free_ports(2))
        for name, words in {
            "headrace": "-m headrace",
            "pytest": "-m pytest -p no:cacheprovider",
            "python": "",
            "pip": f"-P {Path(__file__).with_name('pip_stand_in.py')}",
        }.items():
            script = self._bin / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            script.chmod(0o755)
        self._environment = {
            **{name: value for name, value in os.environ.items() if "HEADRACE" not in name},
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": _SOURCES,
            "HOME": str(self._home),
            "LOGS": str(self._logs),
            "NO_COLOR": "1",
            # Jars are fetched once, not into every home.
            "HEADRACE_CACHE_DIR": str(cache_directory()),
        }
        if http_port is not None:
            self._environment["HEADRACE_BOOTSTRAP"] = f"127.0.0.1:{self._port}"
            self._environment["HEADRACE_HTTP_PORT"] = http_port

    def run(self, blocks: Iterable[Block], *, is_broker_needed: bool) -> tuple[int, str]:
        """Run them one after the other up to the first that fails: exit code, and all output."""
        lines = [_PROLOGUE]
        if is_broker_needed:
            # Beside the page's directory, which is to be empty.
            lines.append('in_background "headrace serve --data-dir $LOGS/data"')
        for block in blocks:
            lines += [f"echo '--- line {block.line}'", block.script()]
        lines.append("end_background")
        script = self._home.parent / "page.sh"
        script.write_text(self._with_port("\n".join(lines)), "utf-8")
        own = [*_OWN_NETWORK, sys.executable, "-c", _LOOPBACK_UP] if self._own else []
        ended = subprocess.run(
            [*own, "bash", str(script)],
            cwd=self.work,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
        )
        return ended.returncode, ended.stdout.decode("utf-8", "replace")

    def _with_port(self, text: str) -> str:
        text = re.sub(rf"\b{_DEFAULT_PORT}\b", self._port, text)
        return (
            text if self._own else re.sub(r"headrace serve\b", rf"\g<0> --port {self._port}", text)
        )


# A new network has its loopback down. Given are the numbers of Linux: SIOCSIFFLAGS, IFF_UP.
_LOOPBACK_UP = """\
import fcntl, os, socket, struct, sys
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 1))
os.execvp(sys.argv[1], sys.argv[1:])
"""


@functools.cache
def can_make_network() -> bool:
    """Whether this user may make a network namespace."""
    if not shutil.which(_OWN_NETWORK[0]):
        return False
    command = [*_OWN_NETWORK, sys.executable, "-c", _LOOPBACK_UP, "true"]
    return subprocess.run(command, capture_output=True).returncode == 0
