"""All topics of this broker: what the catalog says of them, and their logs.

Changes are coroutines, one after another in the line of `changes`: checked there, committed to the
catalog in its thread, and only then put into memory. When a write is refused, nothing has changed.
A topic costs one row until a partition of it is used; then `LogDirectory` makes its directory.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from uuid import UUID

from headrace.broker.adoption import adopt
from headrace.broker.catalog import Catalog
from headrace.broker.deletions import Deletions
from headrace.broker.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from headrace.broker.internal_topics import topic_defaults
from headrace.broker.lookups import run_beside
from headrace.broker.metadata_changes import MetadataChanges
from headrace.broker.partition_limits import check_partition_count, check_partition_total
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.topic_names import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    check_topic_name,
    collision_key,
    new_topic_id,
)
from headrace.broker.turns import Turn
from headrace.config import LogConfig
from headrace.errors import RequestError
from headrace.log.directory import LogDirectory, sizes_on_disk
from headrace.log.errors import StorageError
from headrace.log.partition_log import PartitionLog
from headrace.log.retention import enforce_retention, prepare_retention, remove_files
from headrace.model import Topic, TopicPartition
from headrace.settings.broker_settings import BrokerSettings

# Opening a log takes about 1 ms, and nobody else is served meanwhile.
LOGS_OPENED_AT_ONCE = 20

_log = logging.getLogger(__name__)


class Topics:
    """All topics: catalog + logs. Event-loop thread only."""

    def __init__(
        self,
        catalog: Catalog,
        logs: LogDirectory,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
    ) -> None:
        self.generation = 0  # changes whenever a topic does; caches of the hot paths key on it
        self.on_delete: list[Callable[[Topic], None]] = []
        self.changes = MetadataChanges()
        self.producer_ids = ProducerIds(catalog, self.changes)
        self.catalog = catalog
        self._logs, self._settings, self._now_ms = logs, settings, now_ms
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._sorted: tuple[int, list[Topic]] = (-1, [])
        self._names_by_collision_key: dict[str, set[str]] = {}
        self._log_configs: dict[str, LogConfig] = {}
        self._partition_count = 0
        self._deletions = Deletions(catalog, logs, self.changes)
        self._deletions.finish_at_start()
        adopt(catalog, logs, settings, now_ms())
        for topic in catalog.topics():
            self._take_in(topic)
        self._not_yet_opened = deque(
            TopicPartition(name, partition)
            for name, topic in self._by_name.items()
            for partition in range(topic.partition_count)
        )
        self._keep_producers()
        for log in logs.loaded():
            self._follow(log)  # after a crash, logs were opened for recovery without them

    @property
    def data_dir(self) -> Path:
        """Where the logs lie."""
        return self._logs.path

    def get(self, name: str) -> Topic:
        """Return the topic of this name."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownTopicError(name) from None

    def has(self, name: str) -> bool:
        """Whether there is a topic of this name."""
        return name in self._by_name

    def get_by_id(self, topic_id: UUID) -> Topic:
        """Return the topic with this id."""
        try:
            return self._by_id[topic_id]
        except KeyError:
            raise UnknownTopicIdError(topic_id) from None

    def names(self) -> Collection[str]:
        """Return the names of all topics, in no order."""
        return self._by_name.keys()

    def all(self) -> list[Topic]:
        """Return all topics, by name; a list of the caller's own."""
        generation, topics = self._sorted
        if generation != self.generation:
            topics = [self._by_name[name] for name in sorted(self._by_name)]
            self._sorted = self.generation, topics
        return list(topics)

    def log(self, name: str, partition: int) -> PartitionLog:
        """Return the partition's log, opened or created when this is its first use."""
        topic = self._by_name.get(name)
        if topic is None or not 0 <= partition < topic.partition_count:
            raise UnknownTopicError(name, partition)
        config = self._log_config(topic)
        log = self._logs.get(name, partition, topic.topic_id, config, self._now_ms())
        if log.leader_epoch < topic.leader_epoch:
            log.begin_epoch(topic.leader_epoch)
        return log

    async def sizes_bytes(self, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the size of each log, from disk where it is not open; opens none."""
        sizes: dict[TopicPartition, int] = {}
        unopened: list[TopicPartition] = []
        turn = Turn()
        for partition in wanted:
            log = self._logs.opened(partition)
            sizes[partition] = 0 if log is None else log.size_bytes
            if log is None:
                unopened.append(partition)
            await turn.breathe()
        return sizes | await asyncio.to_thread(sizes_on_disk, self._logs.path, unopened)

    @property
    def partition_count(self) -> int:
        """Partitions of all topics together."""
        return self._partition_count

    def plan(self, name: str, partition_count: int, configs: Mapping[str, str]) -> Topic:
        """Check that this topic could be created and return it as it would be."""
        if name == CLUSTER_METADATA_TOPIC:
            raise RequestError(f"Creation of internal topic {name} is prohibited.")
        check_topic_name(name)
        if name in self._by_name:
            raise TopicExistsError(name)
        if rivals := self._names_by_collision_key.get(collision_key(name)):
            raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {min(rivals)}")
        if configs:
            self._settings.check_topic_configs(configs)
        check_partition_count(partition_count)
        return Topic(name, new_topic_id(), partition_count, dict(configs), name in INTERNAL_TOPICS)

    def plan_by_default(self, name: str) -> Topic:
        """Plan a topic of which only the name is known."""
        return self.plan(name, *topic_defaults(name, self._settings.int))

    # --- changes: what is named `_now` or takes checked plans is for use within `changes.make`

    async def add(self, planned: Sequence[Topic]) -> None:
        """Create topics that were planned in this change, of different names: all or none."""
        if not planned:
            return
        additional = sum(topic.partition_count for topic in planned)
        check_partition_total(self._partition_count, additional)
        await self._deletions.finish([topic.name for topic in planned])
        if not self._logs.remembered_topics().isdisjoint(topic.name for topic in planned):
            # Else a partition would begin, after a crash, where its namesake ended.
            await self.changes.write(self._logs.prepare_noted())
        await self.changes.write(partial(self.catalog.add_topics, planned))
        for topic in planned:
            self._take_in(topic)

    async def create(self, name: str, partition_count: int, configs: Mapping[str, str]) -> Topic:
        """Create one topic."""

        async def change() -> Topic:
            topic = self.plan(name, partition_count, configs)
            await self.add([topic])
            return topic

        return await self.changes.make(change)

    async def ensure(self, name: str) -> tuple[Topic, bool]:
        """Return the topic of this name, and whether it had to be made, with default shape."""

        async def change() -> tuple[Topic, bool]:
            topic = self._by_name.get(name)
            if topic is not None:
                return topic, False
            topic = self.plan_by_default(name)
            await self.add([topic])
            return topic, True

        return await self.changes.make(change)

    async def delete(self, *names: str) -> None:
        """Delete these topics: none when one of them is not there."""
        await self.changes.make(partial(self.delete_now, names))

    async def delete_now(self, names: Sequence[str]) -> None:
        """Delete these topics; they are gone for clients when this returns, files may go later."""
        topics = [self.get(name) for name in names]
        await self.changes.write(partial(self.catalog.mark_deleting, names))
        for topic in topics:
            self._forget(topic)
        self._deletions.note(topics)
        turn = Turn()
        for topic in topics:
            for callback in self.on_delete:
                callback(topic)
            await turn.breathe()
        await self._deletions.try_finish(names)

    def check_partition_increase(self, name: str, count: int, planned: int = 0) -> None:
        """Raise unless topic `name` could have `count` partitions, with `planned` for others."""
        current = self.get(name).partition_count
        if count == current:
            raise InvalidPartitionsError(f"Topic already has {current} partition(s).")
        if count < current:
            raise InvalidPartitionsError(
                f"The topic {name} currently has {current} partition(s); "
                f"{count} would not be an increase."
            )
        check_partition_count(count)
        check_partition_total(self._partition_count + planned, count - current)

    async def add_partitions(self, counts: Mapping[str, int]) -> None:
        """Give topics, which were checked in this change, so many partitions in all."""
        if not counts:
            return
        await self.changes.write(partial(self.catalog.set_partition_counts, dict(counts)))
        for name, count in counts.items():
            self._replace(self.get(name)._replace(partition_count=count))

    async def set_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the topic's overrides; open logs follow at once."""
        await self.changes.make(partial(self.set_configs_now, name, configs))

    async def set_configs_now(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the topic's overrides, within a change."""
        topic = self.get(name)
        self._settings.check_topic_configs(configs)
        await self.changes.write(partial(self.catalog.set_topic_configs, name, dict(configs)))
        self._replace(topic._replace(configs=dict(configs)))
        await self._apply_configs(name)

    async def store_settings(self, flat: Mapping[str, str]) -> None:
        """Keep the broker's settings that were changed at run time, within a change; all follow."""
        await self.changes.write(partial(self.catalog.set_broker_configs, dict(flat)))
        self._settings.set_dynamic(flat)
        self._log_configs.clear()
        self.generation += 1
        await self._apply_configs()

    async def drain(self) -> None:
        """The broker stops: changes under way are carried through."""
        await self.changes.drain()
        await self._deletions.drain()

    # --- housekeeping, in slices

    async def checkpoint(self) -> None:
        """Write the logs' offsets to disk, and index entries that wait in memory."""
        turn = Turn()
        for log in list(self._logs.loaded()):
            if self._logs.is_current(log):
                log.flush_indexes()
                self._logs.note(log)
            await turn.breathe()
        await _carry_through(self._logs.prepare_noted())

    async def checkpoint_starts(self, logs: Iterable[PartitionLog]) -> None:
        """Write to disk where these logs start now."""
        for log in logs:
            self._logs.note(log)
        await _carry_through(self._logs.prepare_noted())

    async def enforce_retention(self, now_ms: int) -> int:
        """Delete old segments of the logs that are open; return how many. See `open_some`."""
        deleted = 0
        doomed: list[Path] = []
        turn = Turn()
        for log in list(self._logs.loaded()):
            if self._is_known(log):
                # How old a segment of another process is, is read from it, once, beside the loop.
                await run_beside(prepare_retention(log, now_ms))
            if self._is_known(log):
                try:
                    deleted += enforce_retention(log, now_ms, doomed.extend)
                except StorageError as error:
                    facts = {"topic": log.topic, "partition": log.partition}
                    _log.warning("retention failed: %s", error, extra=facts)
            await turn.breathe()
        if doomed:
            await _carry_through(partial(remove_files, doomed))
        return deleted

    async def open_some(self) -> None:
        """Open a few logs nobody has used since the start, so that retention reaches them too."""
        opened = 0
        turn = Turn()
        while self._not_yet_opened and opened < LOGS_OPENED_AT_ONCE:
            await turn.breathe()
            partition = self._not_yet_opened.popleft()
            if not (self._logs.path / str(partition)).is_dir():
                continue
            opened += 1
            try:
                self.log(*partition)
            except UnknownTopicError:
                continue  # deleted since
            except StorageError as error:
                _log.warning("retention cannot open %s: %s", partition, error)

    def _is_known(self, log: PartitionLog) -> bool:
        """Whether it is a topic's log: recovery opens all that are on disk, topics are deleted."""
        topic = self._by_name.get(log.topic)
        return topic is not None and topic.topic_id == log.topic_id and self._logs.is_current(log)

    async def _apply_configs(self, name: str | None = None) -> None:
        if name is None:
            self._keep_producers()
        turn = Turn()
        for log in list(self._logs.loaded()):
            if name is None or log.topic == name:
                self._follow(log)
            await turn.breathe()

    def _keep_producers(self) -> None:
        self._logs.keep_producers_for(self._settings.int("producer.id.expiration.ms"))

    def _follow(self, log: PartitionLog) -> None:
        if self._is_known(log):
            log.config = self._log_config(self._by_name[log.topic])

    def _log_config(self, topic: Topic) -> LogConfig:
        config = self._log_configs.get(topic.name)
        if config is None:
            config = self._log_configs[topic.name] = self._settings.log_config(topic.configs)
        return config

    def _take_in(self, topic: Topic) -> None:
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic
        self._names_by_collision_key.setdefault(collision_key(topic.name), set()).add(topic.name)
        self._log_configs.pop(topic.name, None)
        self._partition_count += topic.partition_count
        self.generation += 1

    def _forget(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        key = collision_key(topic.name)
        self._names_by_collision_key[key].discard(topic.name)
        if not self._names_by_collision_key[key]:
            del self._names_by_collision_key[key]
        self._log_configs.pop(topic.name, None)
        self._partition_count -= topic.partition_count
        self.generation += 1

    def _replace(self, topic: Topic) -> None:
        self._forget(self._by_name[topic.name])
        self._take_in(topic)


async def _carry_through(step: Callable[[], None]) -> None:
    """Run a step in a thread; who is cancelled waits for its end, for it writes files."""
    running = asyncio.create_task(asyncio.to_thread(step))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.gather(running, return_exceptions=True)
        raise
