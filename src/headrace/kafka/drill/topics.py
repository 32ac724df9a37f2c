"""The drill's own topics and group, and the settings it asks a broker for.

Only used while the cluster is whole.
"""

from collections.abc import Iterable

from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.kafka.drill.plan import MIN_INSYNC_REPLICAS, REPLICATION_FACTOR
from headrace.kafka.errors import DrillError

_TIMEOUT_S = 30.0


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Make a replicated topic."""
    configs = {"min.insync.replicas": str(MIN_INSYNC_REPLICAS)}
    try:
        _admin(bootstrap).create_topic(topic, partitions, REPLICATION_FACTOR, configs)
    except BusError as error:
        raise DrillError(f"cannot create topic {topic}: {error}") from error


def remove(bootstrap: str, topics: Iterable[str], group: str) -> list[str]:
    """Remove the topics and the group; return what could not be removed."""
    admin = _admin(bootstrap)
    wanted = list(topics)
    try:
        left = [topic for topic, error in admin.delete_topics(wanted).items() if error]
        # A group without members goes by itself in a week; nobody needs to hear of it.
        admin.delete_groups([group])
    except BusError:
        return wanted
    return left


def broker_configs(bootstrap: str, node: int) -> dict[str, str | None]:
    """Every setting of one broker by name."""
    try:
        return {each.name: each.value for each in _admin(bootstrap).configs("broker", str(node))}
    except BusError as error:
        raise DrillError(f"node {node} does not tell its settings: {error}") from error


def _admin(bootstrap: str) -> Admin:
    return Admin(Bus(bootstrap), timeout_s=_TIMEOUT_S, config={"client.id": "headrace-drill"})
