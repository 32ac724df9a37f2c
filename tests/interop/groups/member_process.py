"""One member of a group as a child process: what it says goes into the journal."""

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

from tests.interop.groups.journal import Event, Journal

ROOT = Path(__file__).parents[3]
_END_S = 120.0

# Makes an event of a line the program printed; None when the line is only worth keeping.
Reader = Callable[[str], Event | None]


class Program(NamedTuple):
    """How a member is run, how its output is read, and how it is asked to leave."""

    command: list[str]
    read_stdout: Reader = json.loads
    read_stderr: Reader = lambda line: None
    environment: dict[str, str] | None = None
    takes_commands: bool = True
    finishes_on_leave: bool = True
    may_repeat: bool = False
    exit_codes: tuple[int, ...] = (0,)


class MemberProcess:
    """Owned by the test that started it; two threads read what it prints."""

    def __init__(self, name: str, program: Program, journal: Journal) -> None:
        self.name = name
        self.journal = journal
        self._program = program
        self._is_ending = False
        self._process = subprocess.Popen(
            program.command,
            cwd=ROOT,
            env=program.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(stream, reader), daemon=True)
            for stream, reader in (
                (self._process.stdout, program.read_stdout),
                (self._process.stderr, program.read_stderr),
            )
        ]
        for thread in self._readers:
            thread.start()

    def _read(self, stream: IO[str], reader: Reader) -> None:
        for line in stream:
            event = reader(line)
            self.journal.add(self.name, event or {"event": "said", "text": line.rstrip()})
        if stream is self._process.stdout and not self._is_ending:
            self.journal.add_unexpected_end(self.name)

    @property
    def finishes_on_leave(self) -> bool:
        return self._program.finishes_on_leave

    @property
    def may_repeat(self) -> bool:
        return self._program.may_repeat

    @property
    def processed_count(self) -> int:
        return self.journal.count(self.name)

    @property
    def assignment(self) -> set[int]:
        """The partitions it holds, as it told itself."""
        held: set[int] = set()
        for event in self.journal.of(self.name, "assigned", "revoked", "lost"):
            partitions = event["partitions"]
            if partitions == "all":
                held.clear()
            elif event["event"] == "assigned":
                held |= set(partitions)
            else:
                held -= set(partitions)
        return held

    def tell(self, what: str, **facts: object) -> None:
        """Send one command and wait until it is done."""
        command = {"do": what, **facts}
        before = len(self.journal.of(self.name, "done"))
        self._write(command)
        self.journal.wait_until(
            f"{self.name} has done {command}",
            lambda: len(self.journal.of(self.name, "done")) > before,
        )

    def ask_to_leave(self) -> None:
        """Ask it to commit and leave; `wait_left` waits for that."""
        self._is_ending = True
        if self._program.takes_commands:
            self._write({"do": "leave"})
        else:
            self._process.send_signal(signal.SIGTERM)

    def wait_left(self) -> None:
        code = self._wait_end()
        assert code in self._program.exit_codes, f"{self.name}: {code}\n{self.journal.told()}"

    def expect_end(self) -> None:
        """From now on it may end by itself."""
        self._is_ending = True

    def kill(self) -> None:
        """kill -9: the group learns of it only when its session has ended."""
        self._is_ending = True
        self._process.kill()
        self._wait_end()

    def _write(self, command: Event) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def _wait_end(self) -> int:
        deadline = time.monotonic() + _END_S
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"{self.name} did not end\n{self.journal.told()}") from None
        for thread in self._readers:
            thread.join(max(0.1, deadline - time.monotonic()))
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        return code
