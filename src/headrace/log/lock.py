"""The lock on a data directory: one broker at a time.

Two locks on one `.lock` file: flock excludes another headrace, even in this process, and
a POSIX lock excludes Apache Kafka, which takes that kind. The text in the file is only
for the message; the locks die with the process.
"""

import fcntl
import os
from pathlib import Path

from headrace.errors import DirectoryInUseError, StorageWriteError

FILE_NAME = ".lock"


class DirectoryLock:
    """Held from construction to `release`."""

    def __init__(self, directory: Path) -> None:
        path = directory / FILE_NAME
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageWriteError(path, error) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._fd, 100, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            named = f"process {owner}" if owner.isdigit() else "another broker"
            raise DirectoryInUseError(directory, named) from error
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self._fd)
            raise StorageWriteError(path, error) from error

    def release(self) -> None:
        os.close(self._fd)
