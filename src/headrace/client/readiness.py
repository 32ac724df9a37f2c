"""When a broker answers, when a cluster serves, and when it is whole: asked here, by everybody.

After a restart Kafka lists leaders before they take requests, so each is asked for the end of
its partitions; the answer is the proof.
"""

from collections.abc import Callable, Collection, Mapping

from headrace.client.addresses import Address
from headrace.client.bus import Bus
from headrace.client.cluster_questions import ClusterMetadata, cluster_metadata, ends
from headrace.client.errors import BusError
from headrace.client.wire import WireConnection

_ASK_TIMEOUT_S = 5.0


def is_serving(address: Address, bus: Bus | None = None) -> bool:
    """Whether a broker listens here and lists at least one broker, itself."""
    try:
        with WireConnection(address, bus, _ASK_TIMEOUT_S) as connection:
            return bool(cluster_metadata(connection).brokers)
    except BusError:
        return False


def what_is_missing(
    brokers: Mapping[int, Address],
    *,
    is_whole: bool = False,
    on_alive: Callable[[int], None] = lambda _count: None,
) -> str:
    """Why these brokers do not serve as one cluster; empty when they do. All must know all of it.

    With `is_whole` every ISR has to be full. `on_alive` is told how many brokers one of them lists.
    """
    found = ClusterMetadata({}, [])
    for node, address in brokers.items():
        try:
            with WireConnection(address, timeout_s=_ASK_TIMEOUT_S) as connection:
                found = cluster_metadata(connection)
        except BusError as error:
            return f"node {node} does not answer ({error})"
        on_alive(len(found.brokers))
        if missing := lacking(found, brokers, is_whole=is_whole):
            return missing
    return _unserved(found)


def lacking(found: ClusterMetadata, brokers: Collection[int], *, is_whole: bool = False) -> str:
    """What one broker's view of the cluster lacks; empty when that is nothing."""
    if missing := {*brokers} - {*found.brokers}:
        return f"{_nodes(missing)} not registered"
    for each in found.partitions:
        if each.leader is None:
            return f"{each.topic}-{each.partition} has no leader"
        if is_whole and each.is_under_replicated:
            gone = min({*each.replicas} - {*each.isr})
            return f"node {gone} is not in the ISR of {each.topic}-{each.partition}"
    return ""


def _unserved(found: ClusterMetadata) -> str:
    for node, address in found.brokers.items():
        led = {(each.topic, each.partition) for each in found.partitions if each.leader == node}
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
