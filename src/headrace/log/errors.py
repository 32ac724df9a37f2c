"""What a log refuses, and what the disk refuses a log."""

from pathlib import Path

from headrace.errors import HeadraceError
from headrace.records.errors import RecordError


class StorageError(HeadraceError):
    """The disk, or what lies on it."""


class OffsetOutOfRangeError(StorageError):
    """The offset lies outside the log."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is outside [{start}, {end})")
        self.offset, self.start, self.end = offset, start, end


class CorruptBatchError(StorageError):
    """A batch on disk is damaged."""

    def __init__(self, path: Path, position: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {reason}")
        self.path, self.position, self.reason = path, position, reason


class DirectoryInUseError(StorageError):
    """Another broker has the data directory open."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(
            f"data directory {path} is in use by {owner}; "
            "stop that broker or choose another --data-dir"
        )
        self.path, self.owner = path, owner


class StorageWriteError(StorageError):
    """The operating system refused a write; nothing of it was kept."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {error.strerror or error}")
        self.path, self.error = path, error


class OutOfOrderSequenceError(RecordError):
    """A producer's sequence number leaves a gap."""

    def __init__(self, producer_id: int, sequence: int, expected: int) -> None:
        super().__init__(f"producer {producer_id} sent sequence {sequence}, expected {expected}")
        self.producer_id, self.sequence, self.expected = producer_id, sequence, expected


class InvalidProducerEpochError(RecordError):
    """A producer with an older epoch than the one known was fenced."""

    def __init__(self, producer_id: int, epoch: int, current: int) -> None:
        super().__init__(f"producer {producer_id} has epoch {epoch}, current is {current}")
        self.producer_id, self.epoch, self.current = producer_id, epoch, current
