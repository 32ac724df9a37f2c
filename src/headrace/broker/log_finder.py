"""From a topic as it stands on the wire to its log, remembered for the next request."""

from uuid import UUID

from headrace.broker.topics import Topics
from headrace.errors import UnknownTopicError
from headrace.log.partition_log import PartitionLog


class LogFinder:
    """Event-loop thread only. Forgets everything when any topic changes."""

    __slots__ = ("_generation", "_logs", "_topics")

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._generation = topics.generation
        self._logs: dict[tuple[bytes, int, bool], PartitionLog] = {}

    def find(self, topic: bytes, partition: int, is_id: bool) -> PartitionLog:
        """Return the log of a partition; `topic` is a raw name or a 16-byte id."""
        if self._generation != self._topics.generation:
            self._logs.clear()
            self._generation = self._topics.generation
        key = (topic, partition, is_id)
        log = self._logs.get(key)
        if log is None:
            log = self._topics.log(self._name(topic, is_id), partition)
            self._logs[key] = log
        return log

    def _name(self, topic: bytes, is_id: bool) -> str:
        if is_id:
            return self._topics.get_by_id(UUID(bytes=topic)).name
        try:
            return topic.decode()
        except UnicodeDecodeError:
            raise UnknownTopicError(repr(topic)) from None
