"""Small values that every layer may use."""

from typing import NamedTuple
from uuid import UUID

_NO_TOPIC_ID = "A" * 22  # sixteen zero bytes: what is told of a broker from before 2.8


def known_topic_id(told: str | None) -> str:
    """A topic's id in the letters of Kafka's own tools; empty where the broker knows none.

    librdkafka writes the other base64, so that every second id differs from Java's.
    """
    text = (told or "").replace("+", "-").replace("/", "_")
    return "" if text == _NO_TOPIC_ID else text


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Topic(NamedTuple):
    """What the catalog knows of a topic. `configs` are the overrides in Kafka's names.

    `leader_epoch` holds for all partitions: 0, or for topics that Kafka wrote the newest epoch
    found in their directories, so that it can be told without opening a log.
    """

    name: str
    topic_id: UUID
    partition_count: int
    configs: dict[str, str]
    is_internal: bool = False
    leader_epoch: int = 0
