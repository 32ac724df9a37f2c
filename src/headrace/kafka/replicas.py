"""Every partition's replicas: who leads, who is in sync, how far each lags behind the leader.

A follower's own DescribeLogDirs shows no lag: it compares its end with the high watermark it has
been told of, which is never behind. So each broker is asked for the end of its own copy, with the
replica id that Kafka keeps for such looks, and compared with the leader's.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from headrace.client.addresses import Address, parse_addresses
from headrace.kafka.wire import WireConnection, ask_any

_LATEST = i64(-1)
_CONSUMER, _ANY_REPLICA = BrokerId(-1), BrokerId(-2)
# A paused broker takes the question and never answers; the others need milliseconds.
_PATIENCE_S = 3.0

Partition = tuple[str, int]


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


def cluster_metadata(connection: WireConnection) -> ClusterMetadata:
    """Ask one broker what it knows of the cluster."""
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


def replicas(bootstrap: str, timeout_s: float = 10) -> list[Replica]:
    """Return all partitions with the lag of each replica, in messages; dead nodes have none."""
    found = ask_any(parse_addresses(bootstrap), cluster_metadata, timeout_s)

    def ends_of(node: int) -> Mapping[Partition, int]:
        here = [(each.topic, each.partition) for each in found.partitions if node in each.replicas]
        try:
            patience_s = min(timeout_s, _PATIENCE_S)
            with WireConnection(found.brokers[node], patience_s) as connection:
                return ask_ends(connection, here, is_any_replica=True)
        except OSError:
            return {}

    with ThreadPoolExecutor(max(1, len(found.brokers))) as pool:
        ends = dict(zip(found.brokers, pool.map(ends_of, found.brokers), strict=True))
    return [each._replace(lag_by_node=_lags(each, ends)) for each in found.partitions]


def ask_ends(
    connection: WireConnection, partitions: Iterable[Partition], *, is_any_replica: bool = False
) -> dict[Partition, int]:
    """Return the ends of those partitions the broker answers for: as leader, or with any copy."""
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


def _lags(replica: Replica, ends: Mapping[int, Mapping[Partition, int]]) -> dict[int, int]:
    key = replica.topic, replica.partition
    known = {node: ends[node][key] for node in replica.replicas if key in ends.get(node, {})}
    if replica.leader not in known:
        return {}
    # Followers were perhaps asked after the leader; they are never ahead of it.
    return {node: max(0, known[replica.leader] - end) for node, end in known.items()}
