"""A read that may not wait: what it needs is done in a thread and applied on the loop."""

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from headrace.config import LogConfig
from headrace.log import examining, verifying
from headrace.log.access import BLOCKING, CHECK, INDEX, RESIDENT, Need, NotReadyError, Warm
from headrace.log.errors import CorruptBatchError
from headrace.log.partition_log import FileSlice, PartitionLog
from headrace.log.verifying import CHECK_BYTES, Warming, prepare

KIB = 1024


def in_a_thread(work: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()), name="reader")
    thread.start()
    thread.join()
    return results[0]


def read(log: PartitionLog, offset: int, max_bytes: int = 1 << 30) -> tuple[list[FileSlice], list]:
    """As a fetch reads: (slices, what was needed on the way)."""
    needs = []
    while True:
        try:
            return log.read(offset, max_bytes, access=RESIDENT), needs
        except NotReadyError as error:
            needs.append(error.need)
            preparation = prepare(error.need)
            while preparation is not None:
                preparation = preparation.apply(in_a_thread(preparation.run))


def content(slices: list[FileSlice]) -> bytes:
    return b"".join(os.pread(one.file.fd, one.length, one.position) for one in slices)


def kinds(needs: list[Any]) -> list[str]:
    return [need.kind for need in needs if isinstance(need, Need)]


@pytest.fixture
def no_scan_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads that scanned; the main one must not be among them."""
    threads: list[str] = []
    real = verifying.SegmentSnapshot.scan

    def scan(self: Any, start: int, end: int) -> int:
        threads.append(threading.current_thread().name)
        return real(self, start, end)

    monkeypatch.setattr(verifying.SegmentSnapshot, "scan", scan)
    return threads


def fill(bench: Any, log: PartitionLog, count: int, size: int = 60 * KIB) -> None:
    for _ in range(count):
        bench.append(log, bench.batch(value=os.urandom(size)))


def test_the_first_read_after_a_restart_is_checked_in_a_thread_a_piece_at_a_time(
    bench: Any, no_scan_on_the_loop: list[str]
) -> None:
    log = bench.create()
    fill(bench, log, 140)
    whole = content(log.read(0, 1 << 30))
    log.close()
    log = bench.open()
    no_scan_on_the_loop.clear()

    slices, needs = read(log, 0)

    assert kinds(needs) == [CHECK]
    assert 0 < slices[0].length <= CHECK_BYTES
    assert whole.startswith(content(slices))
    assert set(no_scan_on_the_loop) == {"reader"}


def test_piece_by_piece_all_of_a_log_is_read_and_each_byte_checked_once(
    bench: Any, no_scan_on_the_loop: list[str]
) -> None:
    log = bench.create(LogConfig(segment_bytes=900 * KIB))
    fill(bench, log, 40)
    log.close()
    log = bench.open(LogConfig(segment_bytes=900 * KIB))
    no_scan_on_the_loop.clear()

    first = everything(log)
    scans = len(no_scan_on_the_loop)
    second = everything(log)

    assert first == second == files_of(log)
    assert set(no_scan_on_the_loop) == {"reader"}
    assert len(no_scan_on_the_loop) == scans


def everything(log: PartitionLog) -> bytes:
    out, offset = b"", log.log_start_offset
    while offset < log.log_end_offset:
        slices, _ = read(log, offset)
        piece = content(slices)
        at = 0
        while at < len(piece):
            base, length = (
                int.from_bytes(piece[at : at + 8], "big"),
                int.from_bytes(piece[at + 8 : at + 12], "big"),
            )
            offset = base + int.from_bytes(piece[at + 23 : at + 27], "big") + 1
            at += 12 + length
        out += piece
    return out


def files_of(log: PartitionLog) -> bytes:
    return b"".join(segment.path.read_bytes()[: segment.size] for segment in log.segments)


def test_a_closed_segments_index_is_loaded_in_a_thread(bench: Any) -> None:
    config = LogConfig(segment_bytes=100 * KIB)
    log = bench.create(config)
    fill(bench, log, 10, 30 * KIB)
    log.close()
    log = bench.open(config)
    assert not log.segments[0].index.is_loaded

    slices, needs = read(log, 0)

    assert kinds(needs)[0] == INDEX
    assert log.segments[0].index.is_loaded
    assert slices


def test_an_index_that_is_bad_is_built_anew_by_the_thread(bench: Any) -> None:
    config = LogConfig(segment_bytes=400 * KIB)
    log = bench.create(config)
    fill(bench, log, 40, 10 * KIB)
    log.close()
    log = bench.open(config)
    index = log.segments[0].index
    good = index.path.read_bytes()
    assert len(good) > 16
    index.path.write_bytes(good[8:16] + good[:8] + good[16:])

    slices, _ = read(log, 0)

    assert slices
    assert index.path.read_bytes() == good


def test_damage_is_found_by_the_thread_and_never_served(bench: Any) -> None:
    log = bench.create()
    fill(bench, log, 4, 10 * KIB)
    log.close()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    size = len(data) // 4
    data[2 * size + 100] ^= 1
    path.write_bytes(data)
    log = bench.open()

    slices, _ = read(log, 0)
    assert content(slices) == bytes(data[: 2 * size])
    with pytest.raises(CorruptBatchError):
        read(log, 2)
    behind, _ = read(log, 3)

    assert content(behind) == bytes(data[3 * size :])
    assert [damage.start for damage in log.segments[0].damages] == [2 * size]


def test_what_was_appended_while_a_segment_was_examined_stays_indexed(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.create()
    fill(bench, log, 10, 10 * KIB)
    log.close()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    log = bench.open()
    real = examining.examine_all
    grown = [5, 40]  # a little, which the loop looks at; much, which a thread does

    def examine(copy: Any) -> None:
        real(copy)
        fill(bench, log, grown.pop(), 10 * KIB)

    monkeypatch.setattr(examining, "examine_all", examine)
    for _ in range(2):
        log.segments[0].trusted_from = 1
        with pytest.raises(CorruptBatchError):
            read(log, 0)

    assert log.log_end_offset == 55
    segment = log.segments[0]
    assert segment.index.positions[-1] > segment.size - 30 * KIB
    for offset in range(1, 55):
        slices, _ = read(log, offset, 1)
        assert int.from_bytes(content(slices)[:8], "big") == offset


def test_a_result_that_comes_after_a_cut_changes_nothing(bench: Any) -> None:
    log = bench.create()
    fill(bench, log, 6, 10 * KIB)
    log.close()
    log = bench.open()
    with pytest.raises(NotReadyError) as caught:
        log.read(0, 1 << 20, access=RESIDENT)
    preparation = prepare(caught.value.need)
    result = in_a_thread(preparation.run)
    log.truncate(2)
    fill(bench, log, 1, 5 * KIB)

    assert preparation.apply(result) is None

    assert everything(log) == files_of(log)


def test_pages_that_are_not_in_memory_are_not_waited_for(bench: Any) -> None:
    log = bench.create()
    fill(bench, log, 30)
    file = log.segments[0].file.get()
    if not RESIDENT.has(file, 0, 1, 1) or not RESIDENT.can_probe:
        pytest.skip("this filesystem does not tell what is in memory")
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    slices, needs = read(log, 0, 1 << 20)

    if not needs:
        pytest.skip("the kernel kept the pages")
    assert isinstance(needs[0], Warm)

    Warming(file, 0, slices[0].length).run()
    assert RESIDENT.has(file, 0, slices[0].length, 4096)


def test_where_memory_cannot_be_asked_everything_counts_as_resident(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> int:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "preadv", refuse)
    monkeypatch.setattr(RESIDENT, "can_probe", True)
    log = bench.create()
    bench.append(log, bench.batch(), bench.batch())

    assert content(log.read(0, 1, access=RESIDENT)) == content(log.read(0, 1, access=BLOCKING))
    assert not RESIDENT.can_probe


def test_a_cold_page_is_named_by_its_file_and_place(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.create()
    bench.append(log, bench.batch(), bench.batch())
    monkeypatch.setattr(RESIDENT, "can_probe", True)

    def not_there(*args: Any) -> int:
        raise BlockingIOError(11, "try again")

    monkeypatch.setattr(os, "preadv", not_there)
    with pytest.raises(NotReadyError) as caught:
        log.read(1, 100, access=RESIDENT)

    assert isinstance(caught.value.need, Warm)
    assert caught.value.need.file is log.segments[0].file.get()
