"""Kafka's rules for topic names and ids, and the names that are special.

A name is also a directory name and, in Kafka, a metric name: hence the characters allowed, and
the rule that two topics may not differ in '.' and '_' alone.
"""

import base64
import re
from uuid import UUID, uuid4

from headrace.errors import InvalidTopicError

MAX_NAME_LENGTH = 249  # with "-" and a partition of five digits a directory name stays under 255

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset(
    {GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)

# KRaft's own log lies among the partitions of a directory that Kafka wrote; it is not a topic.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicError, in Kafka's words, unless `name` can be a topic's."""
    fault = _fault(name)
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


def _fault(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
