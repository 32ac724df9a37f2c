"""The drill's own topics and group, and the settings it asks a broker for: librdkafka's admin part.

Only used while the cluster is whole.
"""

import contextlib
from collections.abc import Iterable
from typing import Any

from headrace.errors import DrillError
from headrace.kafka.drill.clients import Config
from headrace.kafka.drill.plan import MIN_INSYNC_REPLICAS, REPLICATION_FACTOR

_TIMEOUT_S = 30.0


def create_topic(config: Config, topic: str, partitions: int) -> None:
    """Make a replicated topic."""
    from confluent_kafka import KafkaException
    from confluent_kafka.cimpl import NewTopic

    new = NewTopic(
        topic,
        partitions,
        REPLICATION_FACTOR,
        config={"min.insync.replicas": str(MIN_INSYNC_REPLICAS)},
    )
    admin = _admin(config)  # kept: its answers die with it
    try:
        admin.create_topics([new], request_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    except KafkaException as error:
        raise DrillError(f"cannot create topic {topic}: {error.args[0].str()}") from error


def remove(config: Config, topics: Iterable[str], group: str) -> list[str]:
    """Remove the topics and the group; return what could not be removed."""
    from confluent_kafka import KafkaException

    admin = _admin(config)
    left = list[str]()
    futures = dict(admin.delete_topics([*topics], request_timeout=_TIMEOUT_S))
    for topic, future in futures.items():
        try:
            future.result(_TIMEOUT_S)
        except (KafkaException, TimeoutError):
            left.append(topic)
    # A group without members goes by itself in a week; nobody needs to hear of it.
    with contextlib.suppress(KafkaException, TimeoutError):
        admin.delete_consumer_groups([group], request_timeout=_TIMEOUT_S)[group].result(_TIMEOUT_S)
    return left


def broker_configs(config: Config, node: int) -> dict[str, str | None]:
    """Every setting of one broker by name."""
    from confluent_kafka import KafkaException

    types = _admin_types()
    resource = types.ConfigResource(types.ResourceType.BROKER, str(node))
    admin = _admin(config)
    try:
        futures = admin.describe_configs([resource], request_timeout=_TIMEOUT_S)
        entries = futures[resource].result(_TIMEOUT_S)
    except KafkaException as error:
        raise DrillError(
            f"node {node} does not tell its settings: {error.args[0].str()}"
        ) from error
    return {name: entry.value for name, entry in entries.items()}


def _admin(config: Config) -> Any:
    return _admin_types().AdminClient(config)


def _admin_types() -> Any:
    """The module confluent_kafka.admin: Any, since its annotations hide half of what it exports."""
    import confluent_kafka.admin

    return confluent_kafka.admin
