"""A crash at any single file operation of a compaction leaves the old log or the new one."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.log.compacting import COMPACTED, records, roll, write
from tests.log.conftest import NOW_MS, Bench

from headrace.log.compaction import plan
from headrace.log.partition_log import PartitionLog
from headrace.log.verify import verify_directory
from headrace.records.record import Record

CONFIG = replace(COMPACTED, segment_bytes=1200)
OPERATIONS = (
    "open", "pwrite", "pwritev", "write", "ftruncate", "truncate", "fsync", "fdatasync",
    "rename", "replace", "unlink", "remove",
)  # fmt: skip


class PowerCut(BaseException):
    """Nothing runs after this."""


@contextmanager
def power_cut_after(count: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let `count` operations that change files happen; the list names them as they do.

    Of this thread alone: a broker of other tests may run beside it in the same process.
    """
    done: list[str] = []
    here = threading.get_ident()

    def guarded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != here:
                return call(*args, **kwargs)
            if name == "open" and not args[1] & os.O_CREAT:
                return call(*args, **kwargs)
            if len(done) >= count:
                raise PowerCut
            done.append(name)
            return call(*args, **kwargs)

        return run

    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, guarded(name, getattr(os, name)))
        yield done


def write_some(bench: Bench, log: PartitionLog) -> None:
    for index in range(30):
        write(bench, log, (b"%d" % (index % 9), b"%d" % index), (b"x", b"y"))
        if index % 10 == 5:
            write(bench, log, (b"%d" % (index % 9), None))
    # Small segments that are joined, the last of them with nothing but superseded records: the
    # one behind them is too large.
    for index in range(9):
        write(bench, log, (b"%d" % index, b"late"))
        if index % 3 == 2:
            roll(log)
    for index in range(9):
        write(bench, log, (b"%d" % index, b"later" * 9))
    roll(log)
    write(bench, log, (b"x", b"last"))


def compact(log: PartitionLog) -> None:
    cleaning = plan(log, NOW_MS)
    assert cleaning is not None
    cleaning.copy()
    cleaning.announce()
    cleaning.sync()
    cleaning.swap()


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    bench = Bench(tmp_path / "prepared")
    log = bench.create(CONFIG)
    write_some(bench, log)
    log.close()
    return bench.directory


def states(prepared: Path, tmp_path: Path) -> tuple[list[Record], list[Record]]:
    bench = Bench(tmp_path / "whole")
    shutil.copytree(prepared, bench.directory)
    log = bench.open(CONFIG)
    before = records(bench, log)
    compact(log)
    after = records(bench, log)
    assert len(after) < len(before)
    return before, after


@pytest.mark.parametrize("is_clean_marker_there", [False, True], ids=["recovered", "believed"])
def test_a_crash_at_any_step_leaves_the_old_log_or_the_new_one(
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_clean_marker_there: bool,
) -> None:
    before, after = states(prepared, tmp_path)
    outcomes = []
    for count in range(1000):
        bench = Bench(tmp_path / f"crash-{count}")
        shutil.copytree(prepared, bench.directory)
        log = bench.open(CONFIG)
        end = log.log_end_offset
        try:
            with power_cut_after(count, monkeypatch):
                compact(log)
            finished = True
        except PowerCut:
            finished = False

        reopened = bench.open(CONFIG, was_clean=is_clean_marker_there, recovery_point=end)
        found = records(bench, reopened)
        assert found in (before, after), f"after {count} operations"
        assert reopened.log_end_offset == end
        outcomes.append(found == after)
        assert write(bench, reopened, (b"new", b"one")) == end
        reopened.close()
        assert verify_directory(bench.directory) == []
        assert not [p for p in bench.directory.iterdir() if p.suffix in (".cleaned", ".swap")]
        shutil.rmtree(bench.directory)
        if finished:
            break

    assert finished
    # Once the new log is there it stays, whatever happens later.
    assert outcomes == sorted(outcomes)
    assert outcomes[0] is False
    assert outcomes[-1] is True


def test_a_crash_while_a_start_cleans_up_costs_nothing_either(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = states(prepared, tmp_path)
    bench = Bench(tmp_path / "count")
    shutil.copytree(prepared, bench.directory)
    log = bench.open(CONFIG)
    with power_cut_after(10_000, monkeypatch) as done:
        compact(log)
    renames = [number for number, name in enumerate(done) if name == "rename"]

    for first in renames[::3]:
        for second in range(0, 24, 5):
            bench = Bench(tmp_path / f"crash-{first}-{second}")
            shutil.copytree(prepared, bench.directory)
            log = bench.open(CONFIG)
            end = log.log_end_offset
            with suppress(PowerCut), power_cut_after(first, monkeypatch):
                compact(log)
            with suppress(PowerCut), power_cut_after(second, monkeypatch):
                bench.open(CONFIG, was_clean=False, recovery_point=end)

            reopened = bench.open(CONFIG, was_clean=False, recovery_point=end)
            assert records(bench, reopened) in (before, after), f"{first}, then {second}"
            reopened.close()
            shutil.rmtree(bench.directory)


def test_indexes_without_a_log_are_removed(prepared: Path) -> None:
    bench = Bench(prepared)
    orphans = [bench.path(7, suffix) for suffix in (".index", ".timeindex", ".txnindex")]
    for orphan in orphans:
        orphan.write_bytes(b"")

    bench.open(CONFIG)

    assert not any(orphan.exists() for orphan in orphans)
    assert len([line for line in bench.repairs if "no log" in line]) == 3
