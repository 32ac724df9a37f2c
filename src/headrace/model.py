"""Small values that every layer may use."""

from typing import NamedTuple
from uuid import UUID


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
