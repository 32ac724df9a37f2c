import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from headrace.broker import durability
from headrace.broker.durability import DiskSync
from headrace.log.checkpoints import read_failed_syncs
from headrace.log.errors import StorageWriteError
from headrace.metrics import Metrics


class FakeFile:
    def __init__(self, fd: int) -> None:
        self.fd = fd

    def sync(self) -> None:
        os.fdatasync(self.fd)


class FakeLog:
    sync_failure: StorageWriteError | None = None

    def __init__(self, path: Path) -> None:
        self.directory = path / "t-0"
        self.file = FakeFile(os.open(path / "f", os.O_CREAT | os.O_RDWR))
        self.end = 0
        self.synced = -1

    def unsynced(self) -> tuple[list[FakeFile], int]:
        return [self.file], self.end

    def mark_synced(self, offset: int) -> None:
        self.synced = offset


@pytest.fixture
def log(tmp_path: Path) -> FakeLog:
    log = FakeLog(tmp_path)
    yield log
    os.close(log.file.fd)


async def synced(sync: DiskSync, log: FakeLog) -> StorageWriteError | None:
    done: asyncio.Future[StorageWriteError | None] = asyncio.get_running_loop().create_future()
    sync.wait(log, done.set_result)
    return await done


def test_one_fdatasync_serves_all_who_came_while_another_ran(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    may_go_on = threading.Event()
    monkeypatch.setattr(os, "fdatasync", lambda fd: (calls.append(fd), may_go_on.wait(120)))

    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        first = asyncio.create_task(synced(sync, log))
        await asyncio.sleep(0)
        others = [asyncio.create_task(synced(sync, log)) for _ in range(10)]
        await asyncio.sleep(0)
        may_go_on.set()
        assert await asyncio.gather(first, *others) == [None] * 11
        sync.stop()

    asyncio.run(scenario())

    assert len(calls) == 2


def test_what_is_marked_synced_is_what_was_there_when_the_sync_began(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.end = 5

    def append_meanwhile(fd: int) -> None:
        log.end = 9

    monkeypatch.setattr(os, "fdatasync", append_meanwhile)

    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        await synced(sync, log)
        assert log.synced == 5
        sync.stop()

    asyncio.run(scenario())


def test_a_failed_sync_is_told_and_the_log_stays_marked(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)

    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        error = await synced(sync, log)
        assert isinstance(error, StorageWriteError)
        assert sync.failed == {log: error}
        assert log.sync_failure is error
        assert log.synced == -1
        sync.stop()

    asyncio.run(scenario())


def test_it_is_idle_only_when_nothing_runs(log: FakeLog) -> None:
    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        assert sync.is_idle
        waiting = asyncio.create_task(synced(sync, log))
        await asyncio.sleep(0)
        assert not sync.is_idle
        await waiting
        assert sync.is_idle
        sync.stop()

    asyncio.run(scenario())


def test_a_passing_want_of_descriptors_is_waited_out(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "_PASSING_PAUSE_SECONDS", 0.001)
    answers = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENFILE, "too"), None]

    def scarce(fd: int) -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    monkeypatch.setattr(os, "fdatasync", scarce)

    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        assert await synced(sync, log) is None
        assert (sync.failed, log.sync_failure, log.synced) == ({}, None, 0)
        assert sync.is_idle
        sync.stop()

    asyncio.run(scenario())


def test_a_failed_sync_is_noted_for_the_next_start(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(file: FakeFile) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(FakeFile, "sync", fail)

    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        await synced(sync, log)
        sync.stop()

    asyncio.run(scenario())

    assert read_failed_syncs(tmp_path) == {"t-0"}


def test_after_a_failure_no_other_sync_is_believed(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [OSError(5, "Input/output error")]

    def fail_once(file: FakeFile) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(FakeFile, "sync", fail_once)

    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        first = await synced(sync, log)
        second = await synced(sync, log)
        assert first is not None
        assert second is first
        assert log.synced == -1
        sync.stop()

    asyncio.run(scenario())


def test_thousands_who_waited_are_told_in_turns_and_in_order(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    told: list[int] = []
    told_by_turn: list[int] = []

    async def scenario() -> None:
        sync = DiskSync(asyncio.get_running_loop(), Metrics())
        sync.wait(log, lambda failure: None)
        for number in range(2_000):
            sync.wait(log, lambda failure, number=number: told.append(number))
        while not sync.is_idle:
            told_by_turn.append(len(told))
            await asyncio.sleep(0)
        sync.stop()

    asyncio.run(scenario())

    assert told == list(range(2_000))
    assert len(set(told_by_turn)) >= 4
