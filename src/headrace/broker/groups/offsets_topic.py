"""`__consumer_offsets`: which partition a group's records go to, and how they get there.

A record is written before the group's state follows it, and is on disk before anybody is told,
as with acks=all.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from headrace.broker.clock import Clock
from headrace.broker.durability import DiskSync
from headrace.broker.errors import UnknownTopicError
from headrace.broker.topic_names import GROUP_METADATA_TOPIC
from headrace.broker.topics import Topics
from headrace.coordinators.groups.codec import encode
from headrace.coordinators.groups.records import GroupRecord
from headrace.log.errors import StorageWriteError
from headrace.log.partition_log import PartitionLog
from headrace.model import Topic
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record

_MAX_CACHED_HASHES = 16_384

OnDisk = Callable[[StorageWriteError | None], None]


class Storage(NamedTuple):
    """How the broker writes: `sync` is None where acks=all means the page cache."""

    flush: Callable[[], None]
    notify: Callable[[PartitionLog, int], None]
    sync: DiskSync | None


class OffsetsTopic:
    """Event-loop thread only."""

    def __init__(self, topics: Topics, clock: Clock, storage: Storage) -> None:
        self._topics, self._clock, self._storage = topics, clock, storage
        self._made_id: UUID | None = None

    @property
    def topic(self) -> Topic | None:
        """The topic, if it is there."""
        try:
            return self._topics.get(GROUP_METADATA_TOPIC)
        except UnknownTopicError:
            return None

    async def ensure(self) -> Topic:
        """The topic, made when it is not there."""
        topic = self.topic
        if topic is None:
            topic, is_made = await self._topics.ensure(GROUP_METADATA_TOPIC)
            if is_made:
                self._made_id = topic.topic_id
        return topic

    @property
    def has_unread(self) -> bool:
        """Whether it may hold what this process has not written itself."""
        topic = self.topic
        return topic is not None and topic.topic_id != self._made_id

    def log_on_disk(self, partition: int) -> PartitionLog | None:
        """The partition's log, None when nothing was ever written to it."""
        if not (self._topics.data_dir / f"{GROUP_METADATA_TOPIC}-{partition}").is_dir():
            return None
        return self._topics.log(GROUP_METADATA_TOPIC, partition)

    def append(self, group_id: str, records: Sequence[GroupRecord]) -> PartitionLog:
        """Write the records as one batch; StorageError when that is refused, and none is kept.

        The topic was made before: see `ensure`.
        """
        topic = self._topics.get(GROUP_METADATA_TOPIC)
        log = self._topics.log(topic.name, partition_for(group_id, topic.partition_count))
        sync = self._storage.sync
        if sync is not None and log in sync.failed:
            raise sync.failed[log]
        if log.has_staged:
            # A failed write forgets all that is staged: what a producer sent must not be among it.
            self._storage.flush()
        now_ms = self._clock.now_ms()
        batch = build_batch(
            [Record(offset, now_ms, *encode(record), []) for offset, record in enumerate(records)]
        )
        header = peek_header(batch)
        assert header is not None
        log.stage(memoryview(batch), header, now_ms)
        log.commit(now_ms)
        self._storage.notify(log, len(batch))
        return log

    def on_disk(self, log: PartitionLog, callback: OnDisk) -> None:
        """Call back when all that is in `log` now would survive a power cut; perhaps at once."""
        sync = self._storage.sync
        if sync is None:
            callback(None)
        elif log in sync.failed:
            callback(sync.failed[log])
        elif not log.needs_sync:
            callback(None)
        else:
            sync.wait(log, callback)

    def log_of(self, group_id: str) -> PartitionLog | None:
        """The log a group's records are in, if there is one."""
        topic = self.topic
        if topic is None:
            return None
        return self.log_on_disk(partition_for(group_id, topic.partition_count))


@lru_cache(maxsize=_MAX_CACHED_HASHES)
def partition_for(group_id: str, partition_count: int) -> int:
    """Kafka's choice: Java's `String.hashCode`, without its sign."""
    value = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    if value >= 0x80000000:
        value = 0x100000000 - value
    # Integer.MIN_VALUE has no positive counterpart; Kafka takes 0 for it.
    return 0 if value == 0x80000000 else value % partition_count
