"""From a topic as it stands on the wire to its log, remembered for the next request."""

from uuid import UUID

from headrace.broker.errors import InvalidTopicError, UnknownTopicError
from headrace.broker.topic_names import INTERNAL_TOPICS
from headrace.broker.topics import Topics
from headrace.log.partition_log import PartitionLog


class LogFinder:
    """Event-loop thread only. Forgets everything when any topic changes."""

    __slots__ = ("_generation", "_is_for_append", "_logs", "_topics")

    def __init__(self, topics: Topics, *, is_for_append: bool = False) -> None:
        self._topics = topics
        self._is_for_append = is_for_append
        self._generation = topics.generation
        self._logs: dict[tuple[bytes, int, bool], PartitionLog] = {}

    def find(self, topic: bytes, partition: int, is_id: bool) -> PartitionLog:
        """Return the log of a partition; `topic` is a raw name or a 16-byte id.

        InvalidTopicError where a client would write what only the coordinators write.
        """
        if self._generation != self._topics.generation:
            self._logs.clear()
            self._generation = self._topics.generation
        key = (topic, partition, is_id)
        log = self._logs.get(key)
        if log is None:
            name = self._name(topic, is_id)
            if self._is_for_append and name in INTERNAL_TOPICS:
                raise InvalidTopicError(f"Cannot append to internal topic {name}")
            log = self._topics.log(name, partition)
            self._logs[key] = log
        return log

    def _name(self, topic: bytes, is_id: bool) -> str:
        if is_id:
            return self._topics.get_by_id(UUID(bytes=topic)).name
        try:
            return topic.decode()
        except UnicodeDecodeError:
            raise UnknownTopicError(repr(topic)) from None
