"""The broker's compaction job: which logs it takes, and what it does when things change."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.broker.compacting import Compacting
from headrace.config import LogConfig
from headrace.log.compaction import Cleaning
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=7)
CONFIG = LogConfig(is_compacted=True, is_deleting=False, segment_bytes=1000)


class Settings(dict[str, Any]):
    def bool(self, name: str) -> bool:
        return cast(bool, self[name])

    def int(self, name: str) -> int:
        return cast(int, self[name])


class Stage:
    def __init__(self, path: Path) -> None:
        self.logs = LogDirectory(path, node_id=1)
        self.logs.open(NOW_MS)
        self.settings = Settings({"log.cleaner.enable": True, "log.cleaner.backoff.ms": 1})
        broker = SimpleNamespace(settings=self.settings, now_ms=lambda: NOW_MS)
        self.sync = SimpleNamespace(failed={})
        service = cast(Any, SimpleNamespace(broker=broker, sync=self.sync))
        self.compacting = Compacting(service, self.logs)

    def log(self, topic: str = "__consumer_offsets", config: LogConfig = CONFIG) -> PartitionLog:
        """A log with closed segments full of one key."""
        log = self.logs.create(topic, 0, TOPIC_ID, config, NOW_MS)
        for index in range(100):
            batch = build_batch([Record(0, NOW_MS, b"k", b"%d" % index, [])])
            header = peek_header(batch)
            assert header is not None
            log.stage(memoryview(batch), header, NOW_MS)
        log.commit(NOW_MS)
        return log


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path / "data")
    yield made
    made.logs.close(NOW_MS)


def test_a_dirty_log_of_an_internal_topic_is_compacted(stage: Stage) -> None:
    log = stage.log()
    before = log.size_bytes

    assert asyncio.run(stage.compacting.look()) == 1

    assert log.size_bytes < before / 3
    assert asyncio.run(stage.compacting.look()) == 0


def test_other_logs_are_left_alone(stage: Stage) -> None:
    logs = [
        stage.log("orders"),
        stage.log("__share_group_state", replace(CONFIG, is_compacted=False)),
    ]
    failed = stage.log("__transaction_state")
    stage.sync.failed[failed] = OSError()
    before = [log.size_bytes for log in [*logs, failed]]

    assert asyncio.run(stage.compacting.look()) == 0

    assert [log.size_bytes for log in [*logs, failed]] == before


def test_a_large_active_segment_is_compacted_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.compacting.ROLL_BYTES", 5000)
    log = stage.log(config=replace(CONFIG, segment_bytes=1_000_000))
    assert len(log.segments) == 1

    assert asyncio.run(stage.compacting.look()) == 1

    assert log.size_bytes < 200


def test_damage_is_told_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    log = stage.log()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[70] ^= 0x55
    path.write_bytes(data)

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(stage.compacting.look()) == 0
        assert asyncio.run(stage.compacting.look()) == 0

    assert [record.message for record in caplog.records if "damaged" in record.message]
    assert len(caplog.records) == 1


def test_a_topic_made_again_meanwhile_is_not_given_the_old_ones_files(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.log()
    copy = Cleaning.copy

    def copy_and_lose_the_topic(self: Cleaning) -> None:
        stage.logs.delete("__consumer_offsets", 0)
        stage.logs.create("__consumer_offsets", 0, TOPIC_ID, CONFIG, NOW_MS)
        copy(self)

    monkeypatch.setattr(Cleaning, "copy", copy_and_lose_the_topic)

    assert asyncio.run(stage.compacting.look()) == 0

    directory = stage.logs.path / "__consumer_offsets-0"
    assert sorted(p.name for p in directory.glob("*.log*")) == [f"{0:020d}.log"]
    assert (directory / f"{0:020d}.log").stat().st_size == 0


def test_a_stop_ends_the_copying_and_leaves_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stage.log()
    copy = Cleaning.copy

    async def stop_while_it_copies() -> None:
        loop = asyncio.get_running_loop()
        has_begun = asyncio.Event()

        def copy_slowly(self: Cleaning) -> None:
            loop.call_soon_threadsafe(has_begun.set)
            self._stopped.wait()
            copy(self)

        monkeypatch.setattr(Cleaning, "copy", copy_slowly)
        job = asyncio.create_task(stage.compacting.run())
        await has_begun.wait()
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)

    asyncio.run(stop_while_it_copies())

    assert not list(log.directory.glob("*.cleaned"))
    assert log.cleaner_offset == 0


def test_nothing_runs_when_it_is_switched_off(stage: Stage) -> None:
    stage.log()
    stage.settings["log.cleaner.enable"] = False

    asyncio.run(stage.compacting.run())
