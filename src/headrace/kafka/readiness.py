"""When a cluster serves: all its brokers are listed, and every partition's leader acts as one.

After a restart Kafka lists leaders before they take requests, so each is asked for the end of
its partitions; the answer is the proof.
"""

import time
from collections.abc import Callable, Collection

from headrace.client.addresses import Address
from headrace.client.cluster_questions import ClusterMetadata, cluster_metadata, ends
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition
from headrace.client.wire import WireConnection
from headrace.kafka.errors import ClusterError

_ASK_TIMEOUT_S = 5.0
_PAUSE_S = 0.1


def await_ready(
    addresses: Collection[Address],
    brokers: Collection[int],
    timeout_s: float,
    on_alive: Callable[[int], None] = lambda _count: None,
) -> None:
    """Return when the cluster serves; `on_alive` is told how many brokers are listed so far."""
    deadline = time.monotonic() + timeout_s
    while reason := _what_is_missing(addresses, brokers, on_alive):
        if time.monotonic() >= deadline:
            raise ClusterError(f"the cluster was not ready within {timeout_s:.0f} s: {reason}")
        time.sleep(_PAUSE_S)


def _what_is_missing(
    addresses: Collection[Address], brokers: Collection[int], on_alive: Callable[[int], None]
) -> str:
    """Say why the cluster is not ready; empty when it is. Every broker must know all of it."""
    for address in addresses:
        try:
            with WireConnection(address, timeout_s=_ASK_TIMEOUT_S) as connection:
                found = cluster_metadata(connection)
        except BusError as error:
            return f"{address[0]}:{address[1]} does not answer ({error})"
        on_alive(len(found.brokers))
        if missing := {*brokers} - {*found.brokers}:
            return f"{_nodes(missing)} not registered"
        leaderless = [each for each in found.partitions if each.leader is None]
        if leaderless:
            return f"{leaderless[0].topic}-{leaderless[0].partition} has no leader"
    return _unserved(found) if addresses else ""


def _unserved(found: ClusterMetadata) -> str:
    for node, address in found.brokers.items():
        led: set[Partition] = {
            (each.topic, each.partition) for each in found.partitions if each.leader == node
        }
        try:
            with WireConnection(address, timeout_s=_ASK_TIMEOUT_S) as connection:
                silent = led - {*ends(connection, led)}
        except BusError as error:
            return f"node {node} does not answer ({error})"
        if silent:
            topic, partition = min(silent)
            return f"node {node} does not yet serve {topic}-{partition}"
    return ""


def _nodes(numbers: Collection[int]) -> str:
    names = ", ".join(map(str, sorted(numbers)))
    return f"node {names} is" if len(numbers) == 1 else f"nodes {names} are"
