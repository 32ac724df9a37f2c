"""A dead-letter topic as the command sees it: its letters, and what was sent again of them."""

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.cli.connection import Connection
from headrace.cli.consume.read_range import ReadRange
from headrace.cli.endings import UsageError
from headrace.client.librdkafka import Partition, checked, places
from headrace.client.partition_bounds import PartitionBounds
from headrace.client.positions import Position
from headrace.pipelines.dead_letters.letter import (
    DeadLetter,
    LetterSource,
    default_topic,
    position_group,
)
from headrace.pipelines.dead_letters.reading import read_letters
from headrace.pipelines.dead_letters.sent import Sent, read_sent

Bounds = dict[int, tuple[int, int]]


class DeadLetterTopic:
    """A dead-letter topic and the group that remembers what was sent again of it."""

    def __init__(self, connection: Connection, name: str | None, topic: str | None) -> None:
        if name is None and topic is None:
            raise UsageError("name a pipeline, or its dead-letter topic with --topic")
        self.topic = topic or default_topic(name or "")
        self.group = position_group(name) if name else self.topic
        self.connection = connection
        self._partitions = list[Partition]()
        self._consumer: Any = None  # for what the group has committed
        self._range: ReadRange | None = None
        self._topic_id = ""

    def open(self, *, is_named: bool) -> bool:
        """Find the topic; False: a pipeline that never met a bad record has none."""
        config = {"group.id": self.group, "enable.auto.commit": False}
        self._consumer = self.connection.consumer(config)
        if not is_named and not self.has_topic(self.topic):
            return False
        self._partitions = self.connection.partitions([self.topic])
        self._range = ReadRange(self.connection.admin(), self._partitions)
        self._topic_id = self.topic_ids([self.topic]).get(self.topic, "")
        return True

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def has_topic(self, topic: str) -> bool:
        return topic in self.connection.admin().describe_topics([topic])

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return self.connection.admin().topic_ids(topics)

    def cluster_id(self) -> str:
        return self.connection.admin().cluster_id()

    def bounds(self, start: Position) -> Bounds:
        assert self._range is not None
        starts = self._range.starts(start)
        ends = self._range.ends(None, is_following=False).offsets
        return {each[1]: (starts[each], ends[each]) for each in self._partitions}

    def has_record(self, source: LetterSource) -> bool:
        """Whether the record a letter is of can still be read where it was."""
        topic_id = self.topic_ids([source.topic]).get(source.topic)
        is_other_cluster = bool(source.cluster_id) and source.cluster_id != self.cluster_id()
        if topic_id is None or is_other_cluster or source.topic_id not in ("", topic_id):
            return False
        place = (source.topic, source.partition)
        bounds = PartitionBounds(self.connection.admin(), [place], is_partial=True)
        return place in bounds.end and bounds.oldest[place] <= source.offset < bounds.end[place]

    def letters(self, start: Position) -> Iterator[DeadLetter]:
        return self.letters_between(self.bounds(start))

    def letters_between(self, bounds: Bounds) -> Iterator[DeadLetter]:
        return read_letters(self.connection.bus, self.topic, bounds, self.connection.timeout_s)

    def sent(self) -> dict[int, Sent]:
        wanted = places(dict.fromkeys(self._partitions, 0))
        found = self.connection.admin().ask(
            lambda: checked(self._consumer.committed(wanted, self.connection.timeout_s))
        )
        return {
            each.partition: read_sent(each.offset, each.metadata, self._topic_id) for each in found
        }

    def commit(self, sent: dict[int, Sent]) -> None:
        offsets = [
            place
            for number, each in sent.items()
            for place in places(
                {(self.topic, number): each.position}, each.metadata(self._topic_id)
            )
        ]
        if offsets:
            self.connection.admin().ask(
                lambda: checked(self._consumer.commit(offsets=offsets, asynchronous=False))
            )
