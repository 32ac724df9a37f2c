"""A command on a terminal of 80 columns: what a user would see, and how the terminal is left.

The terminal is a pseudo-terminal; pyte keeps its screen as the control sequences say.
"""

import os
import pty
import selectors
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyte

import headrace

COLUMNS, LINES = 80, 24
PATIENCE_S = 300.0
_CTRL_C = b"\x03"
_SOURCES = str(Path(headrace.__file__).parents[1])


class Terminal:
    """The screen of one process, which has this as its controlling terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", leader: int) -> None:
        self.process = process
        self._leader = leader
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=10_000)
        self._stream = pyte.ByteStream(self._screen)
        self._has_other_screen = False
        self._modes = termios.tcgetattr(leader)
        self._selector = selectors.DefaultSelector()
        self._selector.register(leader, selectors.EVENT_READ)

    @property
    def lines(self) -> list[str]:
        """What the screen shows, without the blanks at line ends and below."""
        return [line.rstrip() for line in self._screen.display if line.strip()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def is_sane(self) -> bool:
        """Whether the cursor shows, on the main screen, and lines are edited and echoed as ever."""
        has_modes = termios.tcgetattr(self._leader)[:4] == self._modes[:4]
        return has_modes and not self._screen.cursor.hidden and not self._has_other_screen

    def wait_until(self, is_shown: Callable[[str], object]) -> str:
        """Read on until the screen is so; fails when it does not come to that."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_shown(self.text):
            assert time.monotonic() < deadline, self.text
            assert self._read(1.0), f"it ended: {self.text}"
        return self.text

    def press_ctrl_c(self) -> None:
        """The terminal itself makes a signal of it, for all in the foreground."""
        os.write(self._leader, _CTRL_C)

    def end(self) -> int:
        """Wait until the process is over and all it wrote is on the screen; its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(1.0):
            if self.process.poll() is not None:
                while self._read(0.0) and self._selector.select(0):
                    pass
                break
            assert time.monotonic() < deadline, self.text
        return self.process.wait(PATIENCE_S)

    def _read(self, patience_s: float) -> bool:
        """Take in what comes; False once nobody has the terminal open any more."""
        if self._selector.select(patience_s):
            try:
                block = os.read(self._leader, 1 << 16)
            except OSError:  # EIO: how Linux says that the other side is closed
                return False
            self._stream.feed(block)
            # pyte has one screen only.
            left, entered = block.rfind(b"\x1b[?1049l"), block.rfind(b"\x1b[?1049h")
            if left != entered:
                self._has_other_screen = entered > left
        return True


@contextmanager
def on_a_terminal(
    bootstrap: str, *words: object, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """`headrace WORDS…` with all three streams on a terminal of its own; killed at the end."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (LINES, COLUMNS))
    unwanted = ("NO_COLOR", "COLUMNS", "LINES")
    inherited = {name: value for name, value in os.environ.items() if name not in unwanted}
    try:
        with subprocess.Popen(
            [sys.executable, "-c", _BEGIN, *map(str, words)],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            env={
                **inherited,
                "TERM": "xterm-256color",
                "PYTHONPATH": _SOURCES,
                "HEADRACE_BOOTSTRAP": bootstrap,
                **(environment or {}),
            },
        ) as process:
            try:
                yield Terminal(process, leader)
            finally:
                process.kill()
    finally:
        os.close(leader)
        os.close(follower)


# A session's first process takes the terminal as its own, so that Ctrl-C reaches it.
_BEGIN = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "headrace", *sys.argv[1:]])
"""
