"""All topics of this broker: what the catalog says of them, and their logs.

The catalog commits first, memory follows: when a write is refused, nothing has changed.
A topic costs one row until a partition of it is used; then `LogDirectory` makes its directory.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from headrace.broker.adoption import adopt, partition_directories
from headrace.broker.catalog import Catalog
from headrace.broker.internal_topics import default_shape
from headrace.broker.partition_limits import check_partition_count, check_partition_total
from headrace.broker.topic_names import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    check_topic_name,
    collision_key,
    new_topic_id,
)
from headrace.config import LogConfig
from headrace.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    RequestError,
    StorageError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
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
        self.catalog = catalog
        self._logs, self._settings, self._now_ms = logs, settings, now_ms
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._names_by_collision_key: dict[str, set[str]] = {}
        self._log_configs: dict[str, LogConfig] = {}
        self._partition_count = 0
        self._deleting = {topic.name: topic for topic in catalog.topics(deleting=True)}
        self._try_finish_deletions(list(self._deleting))
        adopt(catalog, logs, settings, now_ms())
        for topic in catalog.topics():
            self._take_in(topic)
        self._not_yet_opened = deque(
            TopicPartition(name, partition)
            for name, topic in self._by_name.items()
            for partition in range(topic.partition_count)
        )
        self._apply_configs()  # after a crash, logs were opened for recovery without them

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
        """Return all topics, by name."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def log(self, name: str, partition: int) -> PartitionLog:
        """Return the partition's log, opened or created when this is its first use."""
        topic = self._by_name.get(name)
        if topic is None or not 0 <= partition < topic.partition_count:
            raise UnknownTopicError(name, partition)
        config = self._log_config(topic)
        log = self._logs.get(name, partition, topic.topic_id, config, self._now_ms())
        if log.leader_epoch < topic.leader_epoch:
            _begin_epoch(log, topic.leader_epoch)
        return log

    def sizes_bytes(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the size of each log, from disk where it is not open; opens none."""
        open_logs = {(log.topic, log.partition): log for log in self._logs.loaded()}
        sizes = {}
        for partition in wanted:
            log = open_logs.get(partition)
            if log is not None:
                sizes[partition] = log.size_bytes
                continue
            segments = (self._logs.path / str(partition)).glob("*.log")
            sizes[partition] = sum(path.stat().st_size for path in segments)
        return sizes

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
        return self.plan(name, *default_shape(name, self._settings.int))

    def add(self, planned: Sequence[Topic]) -> None:
        """Create planned topics of different names: all or none, in one commit."""
        if not planned:
            return
        additional = sum(topic.partition_count for topic in planned)
        check_partition_total(self._partition_count, additional)
        self._finish_deletions([topic.name for topic in planned if topic.name in self._deleting])
        self.catalog.add_topics(planned)
        for topic in planned:
            self._take_in(topic)

    def create(self, name: str, partition_count: int, configs: Mapping[str, str]) -> Topic:
        """Create one topic."""
        topic = self.plan(name, partition_count, configs)
        self.add([topic])
        return topic

    def delete(self, *names: str) -> None:
        """Delete these topics: none when one of them is not there."""
        topics = [self.get(name) for name in names]
        self.catalog.mark_deleting(names)
        for topic in topics:
            self._forget(topic)
            self._deleting[topic.name] = topic
        for topic in topics:
            for callback in self.on_delete:
                callback(topic)
        self._try_finish_deletions(names)

    def check_partition_increase(self, name: str, count: int) -> None:
        """Raise unless topic `name` could be given `count` partitions in all."""
        current = self.get(name).partition_count
        if count == current:
            raise InvalidPartitionsError(f"Topic already has {current} partition(s).")
        if count < current:
            raise InvalidPartitionsError(
                f"The topic {name} currently has {current} partition(s); "
                f"{count} would not be an increase."
            )
        check_partition_count(count)
        check_partition_total(self._partition_count, count - current)

    def add_partitions(self, name: str, count: int) -> None:
        """Give the topic `count` partitions in all."""
        self.check_partition_increase(name, count)
        self.catalog.set_partition_count(name, count)
        self._replace(self.get(name)._replace(partition_count=count))

    def set_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the topic's overrides; open logs follow at once."""
        topic = self.get(name)
        self._settings.check_topic_configs(configs)
        self.catalog.set_topic_configs(name, configs)
        self._replace(topic._replace(configs=dict(configs)))
        self._apply_configs(name)

    def apply_settings(self) -> None:
        """Let all open logs follow the broker's settings after these have changed."""
        self._log_configs.clear()
        self.generation += 1
        self._apply_configs()

    def prepare_checkpoint(self) -> Callable[[], None]:
        """Return what writes the logs' offsets to disk; it may run in another thread."""
        return self._logs.prepare_checkpoint()

    def enforce_retention(self, now_ms: int) -> int:
        """Delete old segments of the logs that are open; return how many. See `open_some`."""
        deleted = 0
        for log in self._open_logs():
            try:
                deleted += log.enforce_retention(now_ms)
            except StorageError as error:
                facts = {"topic": log.topic, "partition": log.partition}
                _log.warning("retention failed: %s", error, extra=facts)
        return deleted

    def open_some(self) -> None:
        """Open a few logs nobody has used since the start, so that retention reaches them too."""
        opened = 0
        while self._not_yet_opened and opened < LOGS_OPENED_AT_ONCE:
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

    def _open_logs(self) -> list[PartitionLog]:
        """The open logs of known topics: recovery opens all there are on disk."""
        return [
            log
            for log in self._logs.loaded()
            if (topic := self._by_id.get(log.topic_id)) is not None and topic.name == log.topic
        ]

    def _apply_configs(self, name: str | None = None) -> None:
        if name is None:
            self._logs.keep_producers_for(self._settings.int("producer.id.expiration.ms"))
        for log in self._open_logs():
            if name is None or log.topic == name:
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

    def _try_finish_deletions(self, names: Sequence[str]) -> None:
        try:
            self._finish_deletions(names)
        except StorageError as error:
            # The mark stands: the rest is done when the name is wanted again or at the next start.
            _log.warning("a deleted topic is still on disk: %s", error)

    def _finish_deletions(self, names: Sequence[str]) -> None:
        topics = [self._deleting[name] for name in names]
        if not topics:
            return
        on_disk = partition_directories(self._logs.path)
        for topic in topics:
            for partition in range(topic.partition_count):
                if TopicPartition(topic.name, partition) in on_disk:
                    self._logs.delete(topic.name, partition)
        self.catalog.remove_topics([topic.name for topic in topics])
        for topic in topics:
            del self._deleting[topic.name]


def _begin_epoch(log: PartitionLog, epoch: int) -> None:
    log.leader_epoch = epoch
    # Without the file this is done again after the next start.
    with suppress(OSError):
        if log.epochs.assign(epoch, log.log_end_offset):
            log.epochs.write()
