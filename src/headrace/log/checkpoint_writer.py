"""Writes the checkpoint files, also while the event loop goes on; the newest state wins."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from headrace.log import checkpoints
from headrace.log.errors import StorageWriteError
from headrace.model import TopicPartition

Files = Mapping[str, Mapping[TopicPartition, int]]


class CheckpointWriter:
    """`prepare` belongs to the event-loop thread; what it returns may run in any, once.

    `prepared` and `written` are the numbers of the newest checkpoint that was.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self.prepared = 0
        self.written = 0

    def prepare(self, files: Files) -> Callable[[], None]:
        """Return a function that writes `files`, unless something newer was written before."""
        self.prepared += 1
        number = self.prepared

        def write() -> None:
            with self._lock:
                if number > self.written:
                    self._write(files)
                    self.written = number

        return write

    def _write(self, files: Files) -> None:
        try:
            for name, offsets in files.items():
                checkpoints.write_offsets(self._path / name, offsets)
        except OSError as error:
            raise StorageWriteError(self._path, error) from error
