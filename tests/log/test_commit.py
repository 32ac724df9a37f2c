"""Writing: short writes, a full disk, and what a sync must cover."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from headrace.config import LogConfig
from headrace.log.errors import StorageWriteError
from headrace.log.producer_snapshot import decode_snapshot

SMALL_SEGMENTS = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def fail_writes(monkeypatch: pytest.MonkeyPatch, *, written: int, after_calls: int = 0) -> None:
    """Make os.pwritev write `written` bytes, then refuse as a full disk does."""
    real = os.pwritev
    calls = 0

    def pwritev(fd: int, buffers: list[memoryview], offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls <= after_calls:
            return real(fd, buffers, offset)
        if calls == after_calls + 1 and written:
            data = b"".join(buffers)[:written]
            return os.pwrite(fd, data, offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwritev", pwritev)


def test_more_batches_than_iov_max_are_written(bench: Any) -> None:
    log = bench.create()

    bench.append(log, bench.batch())
    bench.append(log, *(bench.batch() for _ in range(2500)))

    assert bench.read_on(log, 0) == list(range(2501))


def test_a_short_write_is_completed(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = bench.create()
    bench.append(log, bench.batch())
    real = os.pwritev
    calls: list[int] = []

    def short_once(fd: int, buffers: list[memoryview], offset: int) -> int:
        calls.append(offset)
        if len(calls) == 1:
            return os.pwrite(fd, b"".join(buffers)[:150], offset)
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, "pwritev", short_once)
    bench.append(log, bench.batch(), bench.batch())

    assert bench.read_on(log, 0) == [0, 1, 2]


@pytest.mark.parametrize("written", [0, 30, 130])
def test_a_full_disk_leaves_the_log_as_it_was(
    bench: Any, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    log = bench.create()
    bench.append(log, bench.batch())
    before = bench.path(0).read_bytes()
    bench.stage(log, bench.batch(producer_id=1, producer_epoch=0, base_sequence=0))
    bench.stage(log, bench.batch())

    with monkeypatch.context() as patch:
        fail_writes(patch, written=written)
        with pytest.raises(StorageWriteError, match="No space left"):
            log.commit(bench.now_ms)

    assert bench.path(0).read_bytes() == before
    assert (log.log_end_offset, log.has_staged, log.producers.entries) == (1, False, {})
    assert bench.append(log, bench.batch())[0].base_offset == 1
    assert bench.read_on(log, 0) == [0, 1]


def test_a_full_disk_in_the_middle_of_a_roll_takes_the_new_segments_back(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.create(SMALL_SEGMENTS)
    bench.append(log, bench.batch(value=b"y" * 300))
    before = {path.name: path.read_bytes() for path in bench.directory.glob("*.log")}

    with monkeypatch.context() as patch:
        fail_writes(patch, written=100, after_calls=4)
        for _ in range(8):
            bench.stage(log, bench.batch(value=b"y" * 300))
        with pytest.raises(StorageWriteError):
            log.commit(bench.now_ms)

    assert {path.name: path.read_bytes() for path in bench.directory.glob("*.log")} == before
    for _ in range(8):
        bench.append(log, bench.batch(value=b"y" * 300))
    assert bench.read_on(log, 0) == list(range(9))
    log.close()
    assert bench.read_on(bench.open(SMALL_SEGMENTS), 0) == list(range(9))


def test_a_cut_that_fails_is_made_up_for_before_the_next_write(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.create()
    bench.append(log, bench.batch())

    def refuse(fd: int, length: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patch:
        fail_writes(patch, written=50)
        patch.setattr(os, "ftruncate", refuse)
        bench.stage(log, bench.batch(value=b"long" * 100))
        with pytest.raises(StorageWriteError):
            log.commit(bench.now_ms)
    bench.append(log, bench.batch(value=b""))

    assert bench.path(0).stat().st_size == log.size_bytes
    assert bench.read_on(log, 0) == [0, 1]


def test_unsynced_names_log_files_and_new_directories_until_marked(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    bench.append(log, bench.batch())

    files, offset = log.unsynced()
    names = {file.path for file in files}
    assert {bench.path(0), bench.directory, bench.directory.parent} <= names
    log.mark_synced(offset)

    assert (log.recovery_point, log.unsynced()) == (1, ([], 1))


def test_a_roll_during_a_sync_stays_unsynced(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    bench.append(log, bench.batch())
    _, offset = log.unsynced()

    for _ in range(10):
        bench.append(log, bench.batch(value=b"w" * 200))
    log.mark_synced(offset)

    names = {file.path for file in log.unsynced()[0]}
    assert log.recovery_point == 1
    assert {segment.path for segment in log.segments} <= names
    assert bench.directory in names


def test_a_roll_that_is_taken_back_leaves_no_snapshot_of_what_never_was(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.create(SMALL_SEGMENTS)
    bench.append(
        log, bench.batch(value=b"a" * 600, producer_id=1, producer_epoch=0, base_sequence=0)
    )
    before = log.snapshots.latest
    with monkeypatch.context() as patch:
        fail_writes(patch, written=0, after_calls=1)
        for sequence in (1, 2):
            bench.stage(
                log,
                bench.batch(
                    value=b"lost" * 150, producer_id=2, producer_epoch=0, base_sequence=sequence - 1
                ),
            )
        with pytest.raises(StorageWriteError):
            log.commit(bench.now_ms)

    assert log.snapshots.latest == before
    assert list(bench.directory.glob("*.snapshot")) == []

    bench.append(
        log, bench.batch(value=b"b" * 600, producer_id=3, producer_epoch=0, base_sequence=0)
    )
    snapshot = bench.directory / f"{log.segments[-1].base_offset:020d}.snapshot"
    assert set(decode_snapshot(snapshot.read_bytes())) == {1}


def test_thousands_of_unsynced_segments_hold_no_descriptor(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for _ in range(200):
        bench.append(log, bench.batch(value=b"w" * 600))
    open_before = len(list(Path("/proc/self/fd").iterdir()))

    files, offset = log.unsynced()
    held = len(list(Path("/proc/self/fd").iterdir())) - open_before
    for file in files:
        file.sync()
    log.mark_synced(offset)

    assert len(files) > 600
    assert held == 0
    assert not log.has_unsynced_segments


def test_a_segment_that_retention_took_needs_no_sync(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for _ in range(3):
        bench.append(log, bench.batch(value=b"w" * 600))
    files, offset = log.unsynced()
    bench.path(0).unlink()

    for file in files:
        file.sync()
    log.mark_synced(offset)

    assert log.recovery_point == 3
