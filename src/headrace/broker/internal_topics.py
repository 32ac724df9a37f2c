"""How Kafka's internal topics are shaped when they come into being by themselves.

Their cleanup policy is what keeps group positions and transactions alive, so it is set on the
topic and does not follow the broker's defaults.
"""

from collections.abc import Callable
from typing import NamedTuple

from headrace.broker.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)


class TopicDefaults(NamedTuple):
    """What a topic is created with when nobody says."""

    partition_count: int
    configs: dict[str, str]


def topic_defaults(name: str, setting: Callable[[str], int]) -> TopicDefaults:
    """Return the shape of topic `name`; `setting` looks up a broker setting that is an int."""
    if name == GROUP_METADATA_TOPIC:
        return TopicDefaults(
            setting("offsets.topic.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(setting("offsets.topic.segment.bytes")),
            },
        )
    if name == TRANSACTION_STATE_TOPIC:
        return TopicDefaults(
            setting("transaction.state.log.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(setting("transaction.state.log.segment.bytes")),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_GROUP_STATE_TOPIC:
        return TopicDefaults(
            setting("share.coordinator.state.topic.num.partitions"),
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "retention.ms": "-1",
                "segment.bytes": str(setting("share.coordinator.state.topic.segment.bytes")),
            },
        )
    return TopicDefaults(setting("num.partitions"), {})
