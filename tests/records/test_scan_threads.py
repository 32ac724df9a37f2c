"""The scanner in C beside other threads."""

import sys
import threading
import time
from typing import Any

import pytest

from headrace.records.batch import HEADER_SIZE
from headrace.records.builder import build_batch, numbered

_scan = pytest.importorskip("headrace.records._scan", reason="the C scanner was not built")

ANY_TIME = (-(2**63), 2**63 - 1)


@pytest.fixture(scope="module")
def large_batch() -> bytes:
    return bytes(build_batch(numbered([b""] * 50_000)))


@pytest.mark.parametrize("name", ["check_batch", "check_records", "scan_batches", "find_batch"])
def test_other_threads_go_on_while_a_large_buffer_is_read(large_batch: bytes, name: str) -> None:
    assert len(large_batch) > 64 * 1024 + HEADER_SIZE
    arguments: tuple[Any, ...] = {
        "check_batch": (large_batch, False, *ANY_TIME),
        "check_records": (large_batch[HEADER_SIZE:], 50_000, 0, False, False, *ANY_TIME),
        "scan_batches": (large_batch, 0, len(large_batch)),
        "find_batch": (large_batch, 1, len(large_batch), 0),
    }[name]
    # Nobody is made to give the GIL away: only who lets go of it lets the others count.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    counted = 0
    is_over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not is_over.is_set():
            counted += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        for _ in range(1000):
            before = counted
            getattr(_scan, name)(*arguments)
            if counted > before:
                break
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
        counter.join()

    assert counted > before
