"""A dead-letter topic as the command sees it: its letters, and what was sent again of them."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.cli.connection import Connection
from headrace.cli.consume.read_range import Offsets, find_partitions
from headrace.cli.offsets import Partition
from headrace.cli.positions import Position
from headrace.cli.terminal import UsageError
from headrace.client.error_table import is_loading
from headrace.pipelines.dead_letters.letter import (
    DeadLetter,
    LetterSource,
    default_topic,
    position_group,
)
from headrace.pipelines.dead_letters.reading import read_letters
from headrace.pipelines.dead_letters.sent import Sent, read_sent

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_PAUSE_S = 0.1
Bounds = dict[int, tuple[int, int]]


class Box:
    """A dead-letter topic and the group that remembers what was sent again of it."""

    def __init__(self, connection: Connection, name: str | None, topic: str | None) -> None:
        if name is None and topic is None:
            raise UsageError("name a pipeline, or its dead-letter topic with --topic")
        self.topic = topic or default_topic(name or "")
        self.group = position_group(name) if name else self.topic
        self.connection = connection
        self._partitions = list[Partition]()
        self._consumer: Consumer | None = None
        self._offsets: Offsets | None = None
        self._topic_id = ""

    def open(self, *, is_named: bool) -> bool:
        """Find the topic; False: a pipeline that never met a bad record has none."""
        config = {"group.id": self.group, "enable.auto.commit": False}
        self._consumer = self.connection.consumer(config)
        if not is_named and not self.has_topic(self.topic):
            return False
        self._partitions = find_partitions(self.connection, self.consumer, [self.topic], None)
        self._offsets = Offsets(self.connection.admin(), self._partitions)
        self._topic_id = self.topic_ids([self.topic]).get(self.topic, "")
        return True

    @property
    def consumer(self) -> "Consumer":
        assert self._consumer is not None
        return self._consumer

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def has_topic(self, topic: str) -> bool:
        known = self.consumer.list_topics(timeout=self.connection.timeout_s).topics
        return topic in known

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return self.connection.admin().topic_ids(topics)

    def cluster_id(self) -> str:
        return self.connection.admin().cluster_id()

    def bounds(self, start: Position) -> Bounds:
        assert self._offsets is not None
        starts = self._offsets.starts(start)
        ends = self._offsets.ends(None, is_following=False).offsets
        return {each[1]: (starts[each], ends[each]) for each in self._partitions}

    def has_record(self, source: LetterSource) -> bool:
        """Whether the record a letter is of can still be read where it was."""
        from confluent_kafka import KafkaException, TopicPartition

        topic_id = self.topic_ids([source.topic]).get(source.topic)
        is_other_cluster = bool(source.cluster_id) and source.cluster_id != self.cluster_id()
        if topic_id is None or is_other_cluster or source.topic_id not in ("", topic_id):
            return False
        place = TopicPartition(source.topic, source.partition)
        try:
            start, end = self.consumer.get_watermark_offsets(place, self.connection.timeout_s)
        except KafkaException:
            return False
        return start <= source.offset < end

    def letters(self, start: Position) -> Iterator[DeadLetter]:
        timeout_s = self.connection.timeout_s
        return read_letters(self.connection.admin().bus, self.topic, self.bounds(start), timeout_s)

    def sent(self) -> dict[int, Sent]:
        from confluent_kafka import TopicPartition

        wanted = [TopicPartition(*each) for each in self._partitions]
        found = self._ask_coordinator(
            lambda: self.consumer.committed(wanted, self.connection.timeout_s)
        )
        return {
            each.partition: read_sent(each.offset, each.metadata, self._topic_id) for each in found
        }

    def commit(self, sent: dict[int, Sent]) -> None:
        from confluent_kafka import TopicPartition

        offsets = [
            TopicPartition(self.topic, number, each.position, each.metadata(self._topic_id))
            for number, each in sent.items()
        ]
        if offsets:
            self._ask_coordinator(lambda: self.consumer.commit(offsets=offsets, asynchronous=False))

    def _ask_coordinator(self, ask: "Callable[[], list[TopicPartition]]") -> "list[TopicPartition]":
        """Ask again while the group's coordinator starts, as it does on a new cluster."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self.connection.timeout_s
        while True:
            try:
                answer = ask()
                for each in answer:
                    if each.error is not None:
                        raise KafkaException(each.error)
            except KafkaException as error:
                is_over = time.monotonic() >= deadline
                if is_over or not is_loading(error.args[0]):
                    raise
                time.sleep(_PAUSE_S)
            else:
                return answer
