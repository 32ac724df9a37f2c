"""The files `headrace produce` reads, as blocks of bytes; `-` is stdin.

A wait for input is given up every tenth of a second with an empty block, so that whoever
reads can look after deliveries and signals meanwhile.
"""

import os
import select
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headrace.cli.endings import CommandError

STDIN = Path("-")
_BLOCK_BYTES = 256 * 1024
_WAIT_MS = 100


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """The descriptor of a file, open for reading."""
    if path == STDIN:
        yield sys.stdin.fileno()
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def blocks(path: Path, descriptor: int) -> Iterator[bytes]:
    """What is in the file, up to its end; b"" while there is nothing to read yet."""
    readiness = select.poll()
    readiness.register(descriptor, select.POLLIN)
    while True:
        if not readiness.poll(_WAIT_MS):
            yield b""
            continue
        try:
            block = os.read(descriptor, _BLOCK_BYTES)
        except OSError as error:
            raise unreadable(path, error) from error
        if not block:
            return
        yield block


def name_of(path: Path) -> str:
    """What messages call the file."""
    return "stdin" if path == STDIN else str(path)


def total_bytes(paths: Sequence[Path]) -> int | None:
    """The size of all files together; None when one of them is a pipe or a terminal."""
    total = 0
    for path in paths:
        try:
            status = os.fstat(sys.stdin.fileno()) if path == STDIN else path.stat()
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total


def unreadable(path: Path, error: OSError) -> CommandError:
    """The error for a file that cannot be read."""
    return CommandError(f"cannot read {name_of(path)}: {error.strerror}")
