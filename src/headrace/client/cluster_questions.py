"""What librdkafka has no call for: who controls, leads and lags, and whether a cluster serves.

Questions to one broker take a connection, those to a cluster its bus. Answers are plain values.
"""

import contextlib
import datetime
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.describe_quorum.v1.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from headrace.client.addresses import Address
from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition
from headrace.client.wire import WireConnection, ask_any

# An answer's type is loaded when it comes: that takes 3 ms each.
if TYPE_CHECKING:
    from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse
    from kio.schema.list_offsets.v7.response import ListOffsetsResponse
    from kio.schema.metadata.v12.response import MetadataResponse

_METADATA_LOG = TopicName("__cluster_metadata")
_LATEST = i64(-1)
_CONSUMER, _ANY_REPLICA = BrokerId(-1), BrokerId(-2)
_PREFERRED = i8(0)
_CHANGE_TIMEOUT = i32Timedelta.parse(datetime.timedelta(seconds=10))
_ASK_TIMEOUT_S = 5.0
# A paused broker takes the question and never answers; the others need milliseconds.
_PATIENCE_S = 3.0


class Replica(NamedTuple):
    """One partition. `leader` is None while none is elected; who does not answer has no lag."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    lag_by_node: dict[int, int]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class ClusterMetadata(NamedTuple):
    """The brokers that are alive, and all partitions."""

    brokers: dict[int, Address]
    partitions: list[Replica]


class Quorum(NamedTuple):
    """The controllers: who leads, in which epoch, and by how many records the others lag."""

    leader: int
    epoch: int
    lag_by_voter: dict[int, int]


# Of one broker


def cluster_metadata(connection: WireConnection) -> ClusterMetadata:
    """What one broker knows of the cluster."""
    answer: MetadataResponse = connection.ask(
        MetadataRequest(
            topics=None,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    )
    partitions = [
        Replica(
            str(topic.name),
            int(each.partition_index),
            int(each.leader_id) if each.leader_id >= 0 else None,
            tuple(map(int, each.replica_nodes)),
            tuple(map(int, each.isr_nodes)),
            {},
        )
        for topic in answer.topics
        for each in topic.partitions
    ]
    brokers = {int(each.node_id): (each.host, int(each.port)) for each in answer.brokers}
    return ClusterMetadata(brokers, sorted(partitions))


def ends(
    connection: WireConnection, partitions: Iterable[Partition], *, is_any_replica: bool = False
) -> dict[Partition, int]:
    """The ends of those partitions the broker answers for: as leader, or with any copy."""
    by_topic = dict[str, list[int]]()
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    if not by_topic:
        return {}
    request = ListOffsetsRequest(
        replica_id=_ANY_REPLICA if is_any_replica else _CONSUMER,
        isolation_level=i8(0),
        topics=tuple(
            ListOffsetsTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ListOffsetsPartition(partition_index=i32(number), timestamp=_LATEST)
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic.items()
        ),
    )
    answer: ListOffsetsResponse = connection.ask(request)
    return {
        (str(topic.name), int(each.partition_index)): int(each.offset)
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code is ErrorCode.none
    }


def reorder_replicas(
    connection: WireConnection, orders: Mapping[Partition, tuple[int, ...]]
) -> None:
    """Give partitions these orders of their replicas, and let the first ones be elected."""
    by_topic = dict[str, dict[int, tuple[int, ...]]]()
    for (topic, number), replicas in orders.items():
        by_topic.setdefault(topic, {})[number] = replicas
    reassignment = AlterPartitionReassignmentsRequest(
        timeout=_CHANGE_TIMEOUT,
        topics=tuple(
            ReassignableTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=i32(number), replicas=tuple(map(BrokerId, replicas))
                    )
                    for number, replicas in numbers.items()
                ),
            )
            for topic, numbers in by_topic.items()
        ),
    )
    election = ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=tuple(
            TopicPartitions(topic=TopicName(topic), partitions=tuple(map(i32, numbers)))
            for topic, numbers in by_topic.items()
        ),
        timeout=_CHANGE_TIMEOUT,
    )
    connection.ask(reassignment)
    connection.ask(election)


def is_serving(address: Address, bus: Bus | None = None) -> bool:
    """Whether a broker listens here and lists at least one broker, itself."""
    try:
        with WireConnection(address, bus, _ASK_TIMEOUT_S) as connection:
            return bool(cluster_metadata(connection).brokers)
    except BusError:
        return False


# Of a cluster


def active_controller(bus: Bus, timeout_s: float = 10) -> int:
    """The node that is the active controller now; dead brokers may be among those asked."""
    return quorum(bus, timeout_s).leader


def quorum(bus: Bus, timeout_s: float = 10) -> Quorum:
    """What the active controller says of its quorum; BusError when none is elected."""
    return ask_any(bus, _quorum, timeout_s)


def _quorum(connection: WireConnection) -> Quorum | None:
    metadata = TopicData(
        topic_name=_METADATA_LOG, partitions=(PartitionData(partition_index=i32(0)),)
    )
    answer: DescribeQuorumResponse = connection.ask(DescribeQuorumRequest(topics=(metadata,)))
    if answer.error_code is not ErrorCode.none or not answer.topics:
        return None
    found = answer.topics[0].partitions[0]
    if found.error_code is not ErrorCode.none or found.leader_id < 0:
        return None  # between two leaders: ask again
    end = max((voter.log_end_offset for voter in found.current_voters), default=0)
    lags = {int(each.replica_id): int(end - each.log_end_offset) for each in found.current_voters}
    return Quorum(int(found.leader_id), int(found.leader_epoch), lags)


def replicas(bus: Bus, timeout_s: float = 10) -> list[Replica]:
    """All partitions with the lag of each replica, in messages; dead nodes have none.

    A follower's own DescribeLogDirs shows no lag: it compares its end with the high watermark it
    has been told of, which is never behind. So each broker is asked for the end of its own copy,
    with the replica id that Kafka keeps for such looks, and compared with the leader's.
    """
    found = ask_any(bus, cluster_metadata, timeout_s)

    def ends_of(node: int) -> Mapping[Partition, int]:
        here = [(each.topic, each.partition) for each in found.partitions if node in each.replicas]
        with contextlib.suppress(BusError):
            patience_s = min(timeout_s, _PATIENCE_S)
            with WireConnection(found.brokers[node], bus, patience_s) as connection:
                return ends(connection, here, is_any_replica=True)
        return {}

    with ThreadPoolExecutor(max(1, len(found.brokers))) as pool:
        by_node = dict(zip(found.brokers, pool.map(ends_of, found.brokers), strict=True))
    return [each._replace(lag_by_node=_lags(each, by_node)) for each in found.partitions]


def _lags(replica: Replica, by_node: Mapping[int, Mapping[Partition, int]]) -> dict[int, int]:
    key = replica.topic, replica.partition
    known = {node: by_node[node][key] for node in replica.replicas if key in by_node.get(node, {})}
    if replica.leader not in known:
        return {}
    # Followers were perhaps asked after the leader; they are never ahead of it.
    return {node: max(0, known[replica.leader] - end) for node, end in known.items()}


def what_is_missing(
    brokers: Mapping[int, Address],
    *,
    is_whole: bool = False,
    on_alive: Callable[[int], None] = lambda _count: None,
) -> str:
    """Why these brokers do not serve as one cluster; empty when they do. All must know all of it.

    After a restart Kafka lists leaders before they take requests, so each is asked for the end of
    its partitions; the answer is the proof. With `is_whole` every ISR has to be full. `on_alive`
    is told how many brokers one of them lists.
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
