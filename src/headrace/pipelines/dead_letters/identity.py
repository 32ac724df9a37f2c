"""Which topic and which cluster it is, beyond their names: asked of the bus by librdkafka."""

from collections.abc import Iterable
from typing import Any

from headrace.model import known_topic_id


def cluster_id(admin: Any, timeout_s: float) -> str:
    """The cluster's id; empty where it gives none."""
    return str(admin.list_topics(timeout=timeout_s).cluster_id or "")


def topic_ids(admin: Any, topics: Iterable[str], timeout_s: float) -> dict[str, str]:
    """The id of each topic that is there."""
    from confluent_kafka import KafkaException, TopicCollection

    names = list(dict.fromkeys(topics))
    if not names:
        return {}
    futures = admin.describe_topics(TopicCollection(names), request_timeout=timeout_s)
    found = dict[str, str]()
    for name, future in futures.items():
        try:
            found[name] = known_topic_id(str(future.result().topic_id))
        except KafkaException as error:
            if error.args[0].name() not in ("UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED"):
                raise
    return found
