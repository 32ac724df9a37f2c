"""The log against a plain list, through every way a log can be used and abused."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headrace.config import LogConfig
from headrace.log.errors import OffsetOutOfRangeError, StorageWriteError
from headrace.log.retention import enforce_retention
from headrace.records.batch import peek_header

CONFIG = LogConfig(
    segment_bytes=1500,
    index_interval_bytes=200,
    segment_index_bytes=120,
    retention_ms=None,
    file_delete_delay_ms=1000,
)
counts = st.integers(1, 4)
groups = st.lists(st.tuples(counts, st.integers(0, 400)), min_size=1, max_size=6)


class LogMachine(RuleBasedStateMachine):
    """`batches` is the model: (base offset, next offset, bytes), all that was committed."""

    make: Callable[[Path], Any]

    @initialize()
    def create(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="headrace-model-"))
        self.bench = type(self).make(self.root / "t-0")
        self.log = self.bench.create(CONFIG)
        self.batches: list[tuple[int, int, bytes]] = []
        self.start = self.end = self.synced = 0
        self.now_ms = self.bench.now_ms
        self.sequence = 0

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def stage(self, group: list[tuple[int, int]]) -> list[tuple[int, int, bytes]]:
        staged = []
        for count, size in group:
            self.now_ms += 1
            batch = self.bench.batch(
                count,
                value=b"x" * size,
                timestamp=self.now_ms,
                producer_id=1,
                producer_epoch=0,
                base_sequence=self.sequence,
            )
            header = peek_header(batch)
            assert header is not None
            result = self.log.stage(memoryview(batch), header, self.now_ms)
            assert not result.is_duplicate
            self.sequence += count
            staged.append((result.base_offset, result.last_offset + 1, bytes(batch)))
        return staged

    @rule(group=groups)
    def append(self, group: list[tuple[int, int]]) -> None:
        staged = self.stage(group)
        self.end = self.log.commit(self.now_ms)
        self.batches += staged
        assert self.end == staged[-1][1]

    @rule(group=groups, written=st.integers(0, 3000), good_calls=st.integers(0, 3))
    def fail_to_append(self, group: list[tuple[int, int]], written: int, good_calls: int) -> None:
        real = os.pwritev
        calls = 0

        def full_disk(fd: int, buffers: list[memoryview], offset: int) -> int:
            nonlocal calls
            calls += 1
            if calls <= good_calls:
                return real(fd, buffers, offset)
            data = b"".join(buffers)[:written]
            if calls == good_calls + 1 and 0 < len(data) < sum(map(len, buffers)):
                return os.pwrite(fd, data, offset)
            raise OSError(errno.ENOSPC, "no space")

        before = self.sequence
        staged = self.stage(group)
        with mock.patch.object(os, "pwritev", full_disk):
            try:
                self.end = self.log.commit(self.now_ms)
                self.batches += staged
            except StorageWriteError:
                self.sequence = before

    @rule(group=groups)
    def discard(self, group: list[tuple[int, int]]) -> None:
        before = self.sequence
        self.stage(group)
        self.log.discard()
        self.sequence = before

    @rule(where=st.floats(0, 1), max_bytes=st.integers(1, 2500))
    def read(self, where: float, max_bytes: int) -> None:
        offset = self.start + round((self.end - self.start) * where)
        data = self.bench.read(self.log, offset, max_bytes)
        wanted = [batch for batch in self.batches if batch[1] > offset]
        assert bool(data) == bool(wanted)
        if wanted:
            assert b"".join(batch[2] for batch in wanted).startswith(data)
            assert len(data) <= max(max_bytes, len(wanted[0][2]))
            assert self.bench.offsets(data)[0] == wanted[0][0]

    @rule(below=st.integers(1, 100))
    def read_outside(self, below: int) -> None:
        for offset in (self.start - below, self.end + below):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, 100)

    @rule(where=st.floats(0, 1))
    def find_by_time(self, where: float) -> None:
        timestamp = self.bench.now_ms + round((self.now_ms - self.bench.now_ms) * where)
        found = self.bench.offset_for_time(self.log, timestamp)
        wanted = None
        for base, after, batch in self.batches:
            header = peek_header(batch)
            assert header is not None
            if header.max_timestamp >= timestamp and after > self.start:
                wanted = (header.max_timestamp, max(base, self.start))
                break
        assert found == wanted

    @rule(where=st.floats(0, 1))
    def delete_records(self, where: float) -> None:
        self.start += round((self.end - self.start) * where)
        assert self.log.delete_records(self.start) == self.start

    @rule(limit=st.one_of(st.none(), st.integers(0, 6000)))
    def retain(self, limit: int | None) -> None:
        size = self.log.size_bytes
        self.log.config = LogConfig(
            segment_bytes=1500,
            index_interval_bytes=200,
            segment_index_bytes=120,
            retention_ms=None,
            retention_bytes=limit,
        )
        self.now_ms += 600
        enforce_retention(self.log, self.now_ms)
        assert self.log.log_start_offset >= self.start
        if limit is not None:
            assert self.log.size_bytes >= min(size, limit) or self.start > 0
        self.start = self.log.log_start_offset
        self.log.config = CONFIG

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        offset = self.start + round((self.end - self.start) * where)
        self.log.truncate(offset)
        holding = [base for base, after, _ in self.batches if base < offset < after]
        self.end = min([offset, *holding])
        self.batches = [batch for batch in self.batches if batch[1] <= self.end]
        self.start = min(self.start, self.end)
        self.synced = min(self.synced, self.end)
        entry = self.log.producers.entries.get(1)
        self.sequence = entry.last_sequence + 1 if entry else self.sequence

    @rule()
    def sync(self) -> None:
        files, offset = self.log.unsynced()
        covered = {file.path for file in files}
        unsynced = [s for s in self.log.segments if s.end_offset > self.log.recovery_point]
        assert {segment.path for segment in unsynced} <= covered
        self.log.mark_synced(offset)
        self.synced = self.log.recovery_point

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.synced = self.end
        self.log = self.bench.open(
            CONFIG, recovery_point=self.synced, log_start_offset=self.start, now_ms=self.now_ms
        )
        assert self.bench.repairs == []

    @rule(torn=st.integers(0, 500), loses_index=st.booleans())
    def crash(self, torn: int, loses_index: bool) -> None:
        active = self.log.segments[-1]
        tail = bytes(self.bench.batch(3, value=b"t" * 200))[: min(torn, 600)]
        with active.path.open("ab") as file:
            file.write(tail)
        if loses_index:
            active.index.path.unlink()
        self.log = self.bench.crash_open(
            CONFIG, recovery_point=self.synced, log_start_offset=self.start, now_ms=self.now_ms
        )
        assert [text for text in self.bench.repairs if "damaged" in text] == []

    @precondition(lambda self: hasattr(self, "log"))
    @invariant()
    def ends_agree(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.size_bytes == sum(s.path.stat().st_size for s in self.log.segments)
        assert not self.log.has_staged
        bases = [segment.base_offset for segment in self.log.segments]
        assert bases == sorted(set(bases))
        assert self.log.segments[-1].end_offset == self.end


def test_the_log_behaves_like_a_list(make_bench: Callable[[Path], Any]) -> None:
    machine = type("Machine", (LogMachine,), {"make": staticmethod(make_bench)})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )
