"""Kafka's rules for topic names and ids, and the names that are special.

A name is also a directory name and, in Kafka, a metric name: hence the characters allowed, and
the rule that two topics may not differ in '.' and '_' alone.
"""

import base64
from uuid import UUID, uuid4

from headrace.broker.errors import InvalidTopicError
from headrace.model import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    MAX_NAME_LENGTH,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    topic_name_fault,
)

__all__ = [
    "CLUSTER_METADATA_TOPIC",
    "GROUP_METADATA_TOPIC",
    "INTERNAL_TOPICS",
    "MAX_NAME_LENGTH",
    "SHARE_GROUP_STATE_TOPIC",
    "TRANSACTION_STATE_TOPIC",
    "check_topic_name",
    "collision_key",
    "new_topic_id",
]

# KRaft's own log lies among the partitions of a directory that Kafka wrote; it is not a topic.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicError, in Kafka's words, unless `name` can be a topic's."""
    fault = topic_name_fault(name)
    if fault is not None:
        raise InvalidTopicError(f"Topic name is invalid: {fault}")


def collision_key(name: str) -> str:
    """Return what two names that may not both exist have in common."""
    return name.replace(".", "_")


def new_topic_id() -> UUID:
    """Return a random id. Kafka's tools take ids as arguments, so none may start with a dash."""
    while base64.urlsafe_b64encode((topic_id := uuid4()).bytes).startswith(b"-"):
        pass
    return topic_id
