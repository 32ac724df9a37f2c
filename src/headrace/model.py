"""Small values that every layer may use."""

import re
from typing import NamedTuple
from uuid import UUID

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
# Kafka's own, which no client writes. Any other name that begins so is a user's.
INTERNAL_TOPICS = frozenset(
    {GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)

MAX_NAME_LENGTH = 249  # with "-" and a partition of five digits a directory name stays under 255
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_NO_TOPIC_ID = "A" * 22  # sixteen zero bytes: what is told of a broker from before 2.8


def known_topic_id(told: str | None) -> str:
    """A topic's id in the letters of Kafka's own tools; empty where the broker knows none.

    librdkafka writes the other base64, so that every second id differs from Java's.
    """
    text = (told or "").replace("+", "-").replace("/", "_")
    return "" if text == _NO_TOPIC_ID else text


def topic_name_fault(name: str) -> str | None:
    """Why `name` can be no topic's, in Kafka's words; None: it can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


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
