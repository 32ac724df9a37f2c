"""Builders for the log's tests: batches, and a partition that can be closed, crashed, reopened."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace.config import LogConfig
from headrace.log.files import FileCache
from headrace.log.index_cache import IndexCache
from headrace.log.loading import Opening, create_partition, open_partition
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.log.steps import Steps, run_here
from headrace.log.time_lookup import first_at_or_after, first_of_max_timestamp
from headrace.records.batch import HEADER_SIZE, peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=7)
KAFKA_DATA = Path(__file__).parent.parent / "data" / "kafka-4.3.1" / "data"


class Bench:
    """One partition's directory and the log opened on it."""

    now_ms = NOW_MS

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = FileCache(64)
        self.repairs: list[str] = []

    def batch(
        self, count: int = 1, *, value: bytes = b"v" * 20, timestamp: int = NOW_MS, **fields: Any
    ) -> bytearray:
        records = [Record(i, timestamp, b"k", value, []) for i in range(count)]
        return build_batch(records, **fields)

    def opening(self, **fields: Any) -> Opening:
        fields.setdefault("now_ms", NOW_MS)
        self.repairs = []
        return Opening(
            files=self.files,
            indexes=IndexCache(),
            repairs=self.repairs,
            **fields,
        )

    def create(self, config: LogConfig | None = None, **opening: Any) -> PartitionLog:
        return create_partition(
            self.directory, "t", 0, TOPIC_ID, config or LogConfig(), self.opening(**opening)
        )

    def open(self, config: LogConfig | None = None, **opening: Any) -> PartitionLog:
        return open_partition(
            self.directory, "t", 0, TOPIC_ID, config or LogConfig(), self.opening(**opening)
        )

    def crash_open(
        self, config: LogConfig | None = None, recovery_point: int = 0, **opening: Any
    ) -> PartitionLog:
        return self.open(config, was_clean=False, recovery_point=recovery_point, **opening)

    def append(self, log: PartitionLog, *batches: bytearray) -> list[AppendResult]:
        results = [self.stage(log, batch) for batch in batches]
        log.commit(NOW_MS)
        return results

    def stage(self, log: PartitionLog, batch: bytearray) -> AppendResult:
        header = peek_header(batch)
        assert header is not None
        return log.stage(memoryview(batch), header, NOW_MS)

    def read(self, log: PartitionLog, offset: int, max_bytes: int = 1_000_000) -> bytes:
        slices = log.read(offset, max_bytes)
        return b"".join(os.pread(s.file.fd, s.length, s.position) for s in slices)

    def offsets(self, data: bytes) -> list[int]:
        """The base offsets of the batches in `data`, which must be whole."""
        found, at = [], 0
        while at < len(data):
            header = peek_header(data, at)
            assert header is not None
            assert HEADER_SIZE <= header.size <= len(data) - at
            found.append(header.base_offset)
            at += header.size
        return found

    def read_on(self, log: PartitionLog, offset: int, max_bytes: int = 1_000_000) -> list[int]:
        """The base offsets of all batches from `offset` to the end, by sequential reads."""
        found: list[int] = []
        while data := self.read(log, offset, max_bytes):
            found += self.offsets(data)
            header = peek_header(data, _last_batch_at(data))
            assert header is not None
            offset = header.next_offset
        return found

    def offset_for_time(self, log: PartitionLog, timestamp_ms: int) -> tuple[int, int] | None:
        return run_here(first_at_or_after(log, timestamp_ms))

    def offset_of_max_timestamp(self, log: PartitionLog) -> tuple[int, int] | None:
        return run_here(first_of_max_timestamp(log))

    def path(self, base_offset: int, suffix: str = ".log") -> Path:
        return self.directory / f"{base_offset:020d}{suffix}"

    def flip(self, position: int, base_offset: int = 0) -> None:
        """Change one byte of a segment."""
        data = bytearray(self.path(base_offset).read_bytes())
        data[position] ^= 0x55
        self.path(base_offset).write_bytes(data)


def elsewhere(call: Callable[[], object]) -> object:
    """What `call` returns in a thread of its own."""
    outcome: list[object] = []
    thread = threading.Thread(target=lambda: outcome.append(call()))
    thread.start()
    thread.join()
    return outcome[0]


def drive(steps: Steps[Any], *between: Callable[[], object]) -> tuple[Any, int]:
    """Run jobs elsewhere; behind the first job call the first of `between`, and so on.

    The result, and how many jobs there were.
    """
    meanwhile = iter(between)
    jobs = 0
    try:
        call = next(steps)
        while True:
            jobs += 1
            result = elsewhere(call)
            next(meanwhile, lambda: None)()
            call = steps.send(result)
    except StopIteration as end:
        return end.value, jobs


def _last_batch_at(data: bytes) -> int:
    at = last = 0
    while at < len(data):
        header = peek_header(data, at)
        assert header is not None
        last, at = at, at + header.size
    return last


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "t-0")


@pytest.fixture
def make_bench() -> Callable[[Path], Bench]:
    return Bench


@pytest.fixture
def kafka_data() -> Path:
    """The data directory that Apache Kafka 4.3.1 wrote (see its README)."""
    return KAFKA_DATA


@pytest.fixture
def adopted(tmp_path: Path) -> Path:
    """A writable copy of Kafka's data directory."""
    target = tmp_path / "adopted"
    for source in KAFKA_DATA.rglob("*"):
        if source.is_file():
            copy = target / source.relative_to(KAFKA_DATA)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
    return target
