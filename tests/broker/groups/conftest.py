"""Groups on a temporary directory, with the disk under the test's control."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.catalog import Catalog
from headrace.broker.clock import Clock
from headrace.broker.groups.offsets_topic import OnDisk, Storage
from headrace.broker.groups.runtime import GroupRuntime
from headrace.broker.topics import Topics
from headrace.log.directory import LogDirectory
from headrace.log.errors import StorageWriteError
from headrace.log.partition_log import PartitionLog
from headrace.metrics import Metrics
from headrace.settings.broker_settings import BrokerSettings


class FakeSync:
    """A disk that has what it is given when the test says so."""

    def __init__(self) -> None:
        self.failed: dict[PartitionLog, StorageWriteError] = {}
        self.waiting: list[tuple[PartitionLog, OnDisk]] = []

    def wait(self, log: PartitionLog, callback: OnDisk) -> None:
        self.waiting.append((log, callback))

    def finish(self) -> None:
        waiting, self.waiting = self.waiting, []
        for log, callback in waiting:
            log.mark_synced(log.log_end_offset)
            callback(None)

    def fail(self) -> None:
        waiting, self.waiting = self.waiting, []
        for log, callback in waiting:
            error = self.failed[log] = StorageWriteError(log.directory, OSError(5, "I/O error"))
            callback(error)


class Node:
    """One broker's groups; `restart` opens the same directory again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runner = asyncio.Runner()
        self.flushes = 0
        self.grown: list[tuple[PartitionLog, int]] = []
        self.open()

    def open(self, sync: FakeSync | None = None, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = BrokerSettings.load(
            overrides={"offsets.topic.num.partitions": "4", **named}
        )
        self.clock = Clock()
        self.logs = LogDirectory(self.path, node_id=1)
        self.logs.open(self.clock.now_ms())
        self.catalog = Catalog(self.path)
        self.topics = Topics(self.catalog, self.logs, self.settings, self.clock.now_ms)
        self.sync = sync
        self.metrics = Metrics()
        storage: Any = Storage(self._flush, lambda *grown: self.grown.append(grown), sync)  # type: ignore[arg-type]
        self.groups = GroupRuntime(self.topics, self.settings, self.clock, storage, self.metrics)
        self.topics.on_delete.append(self.groups.on_topic_deleted)

    def _flush(self) -> None:
        self.flushes += 1

    def close(self) -> None:
        self.clock.stop()
        with closing(self.catalog):
            self.logs.close(self.clock.now_ms())

    def restart(self, sync: FakeSync | None = None, **settings: str) -> None:
        self.close()
        self.open(sync, **settings)

    def run(self, awaitable: Any) -> Any:
        async def call() -> Any:
            return await awaitable

        return self.runner.run(call())


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    node.runner.run(node.topics.create("t", 3, {}))
    yield node
    node.close()
    node.runner.close()
