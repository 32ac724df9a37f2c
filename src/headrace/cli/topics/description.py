"""What a broker knows about topics: partitions, replicas, offsets, bytes."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.client.admin import Admin
from headrace.model import INTERNAL_TOPICS


class PartitionFacts(NamedTuple):
    """One partition. Without a leader it has no offsets; without DescribeLogDirs no size."""

    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    oldest_offset: int | None
    end_offset: int | None
    size_bytes: int | None

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class TopicFacts(NamedTuple):
    """One topic with its partitions in order."""

    name: str
    partitions: list[PartitionFacts]

    @property
    def replication_factor(self) -> int:
        return max((len(each.replicas) for each in self.partitions), default=0)

    @property
    def message_count(self) -> int:
        """An estimate: compaction and transactions leave offsets without a message."""
        return sum((each.end_offset or 0) - (each.oldest_offset or 0) for each in self.partitions)

    @property
    def size_bytes(self) -> int | None:
        """Bytes of one copy; None when any partition's are not known."""
        sizes = [each.size_bytes for each in self.partitions if each.size_bytes is not None]
        return sum(sizes) if len(sizes) == len(self.partitions) else None


def describe_topics(
    admin: Admin,
    *,
    names: Sequence[str] | None = None,
    has_internal: bool = False,
) -> list[TopicFacts]:
    """All topics, or those of `names` that exist, in that order."""
    metadata = admin.metadata()
    wanted = sorted(metadata.topics) if names is None else list(dict.fromkeys(names))
    found = [
        metadata.topics[name]
        for name in wanted
        if name in metadata.topics and (has_internal or name not in INTERNAL_TOPICS)
    ]
    led = [
        (topic.name, partition.number)
        for topic in found
        for partition in topic.partitions.values()
        if partition.leader is not None
    ]
    oldest = admin.oldest_offsets(led, is_partial=True)
    end = admin.end_offsets(led, is_partial=True)
    sizes = admin.log_sizes()
    return [
        TopicFacts(
            topic.name,
            [
                PartitionFacts(
                    number,
                    partition.leader,
                    list(partition.replicas),
                    list(partition.isr),
                    oldest.get((topic.name, number)),
                    end.get((topic.name, number)),
                    sizes.get((topic.name, number)),
                )
                for number, partition in topic.partitions.items()
            ],
        )
        for topic in found
    ]
