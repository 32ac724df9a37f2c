"""What a bus says of itself, as plain values: brokers, topics, configs, groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition
from headrace.model import known_topic_id

DEAD = "Dead"  # the state of a group that does not exist
# Kafka's names; librdkafka has its own, and none for the two states only KIP-848 groups have.
_STATES = {
    "UNKNOWN": "Assigning/Reconciling",
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "DEAD": DEAD,
    "EMPTY": "Empty",
}


# Kafka's names of the places a value comes from that somebody chose, by what has the config.
_CHOSEN = {
    "topic": {"DYNAMIC_TOPIC_CONFIG"},
    "group": {"GROUP_CONFIG"},
    "broker": {"DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG"},
}


@dataclass(frozen=True, slots=True, order=True)
class Config:
    """One config as the broker reports it; a sensitive one has no value."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool

    def is_set_on(self, kind: str) -> bool:
        """Whether somebody gave it this value, here rather than further up."""
        return self.source in _CHOSEN[kind]


class BrokerDescription(NamedTuple):
    """A broker and where clients find it. Only a description of the cluster names its rack."""

    id: int
    host: str
    port: int
    rack: str | None = None


class PartitionDescription(NamedTuple):
    """One partition; `leader` is None while nobody leads it."""

    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class TopicDescription(NamedTuple):
    """One topic and its partitions by number; an id is empty where none is given."""

    name: str
    partitions: Mapping[int, PartitionDescription]
    topic_id: str = ""

    @property
    def replication_factor(self) -> int:
        """The copies of the partition that has the fewest."""
        return min((len(each.replicas) for each in self.partitions.values()), default=0)


class Metadata(NamedTuple):
    """The brokers that are alive, and all topics."""

    cluster_id: str
    brokers: Mapping[int, BrokerDescription]
    topics: Mapping[str, TopicDescription]

    def led_partitions(self) -> list[Partition]:
        """The partitions that have a leader: others have no offsets now."""
        return [
            (name, number)
            for name, topic in self.topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader is not None
        ]


class ClusterDescription(NamedTuple):
    """The cluster's brokers in the order of their ids; `controller_id` may be unknown."""

    cluster_id: str
    controller_id: int | None
    brokers: tuple[BrokerDescription, ...]


class ListedGroup(NamedTuple):
    """One group of a list: its state by Kafka's name, and whether it is classic or consumer."""

    name: str
    state: str
    protocol: str


class GroupList(NamedTuple):
    """The groups by name; where a broker did not answer there is an error, and its are missing."""

    groups: tuple[ListedGroup, ...]
    errors: tuple[BusError, ...]


class MemberDescription(NamedTuple):
    """One member of a group; `host` is an address without Java's leading slash."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Partition, ...]


class GroupDescription(NamedTuple):
    """One group; one that does not exist is in state Dead, as Kafka has it."""

    name: str
    state: str
    protocol: str
    assignor: str | None
    coordinator: BrokerDescription | None
    members: tuple[MemberDescription, ...]


# From what librdkafka has.


def metadata_of(raw: Any) -> Metadata:
    """From a ClusterMetadata."""
    return Metadata(
        raw.cluster_id or "",
        {number: _broker_of(each) for number, each in sorted(raw.brokers.items())},
        {
            name: TopicDescription(
                name,
                {
                    each.id: PartitionDescription(
                        each.id,
                        each.leader if each.leader >= 0 else None,
                        tuple(each.replicas),
                        tuple(each.isrs),
                    )
                    for each in sorted(topic.partitions.values(), key=lambda each: each.id)
                },
            )
            for name, topic in raw.topics.items()
        },
    )


def cluster_of(raw: Any) -> ClusterDescription:
    """From a DescribeClusterResult."""
    brokers = sorted(map(_broker_of, raw.nodes), key=lambda each: each.id)
    controller_id = raw.controller.id if raw.controller else None
    return ClusterDescription(raw.cluster_id or "", controller_id, tuple(brokers))


def topic_of(raw: Any) -> TopicDescription:
    """From a TopicDescription of librdkafka's."""
    return TopicDescription(
        raw.name,
        {
            each.id: PartitionDescription(
                each.id,
                each.leader.id if each.leader else None,
                tuple(node.id for node in each.replicas),
                tuple(node.id for node in each.isr),
            )
            for each in sorted(raw.partitions, key=lambda each: each.id)
        },
        known_topic_id(str(raw.topic_id)),
    )


def groups_of(raw: Any, failure: Callable[[Any], BusError]) -> GroupList:
    """From a ListConsumerGroupsResult."""
    return GroupList(
        tuple(
            ListedGroup(each.group_id, _STATES[each.state.name], each.type.name.lower())
            for each in sorted(raw.valid, key=lambda each: str(each.group_id))
        ),
        # Documented as KafkaException, they are KafkaError.
        tuple(failure(each) for each in raw.errors or ()),
    )


def group_of(raw: Any) -> GroupDescription:
    """From a ConsumerGroupDescription."""
    return GroupDescription(
        raw.group_id,
        _STATES[raw.state.name],
        raw.type.name.lower(),
        raw.partition_assignor or None,
        _broker_of(raw.coordinator) if raw.coordinator else None,
        tuple(
            MemberDescription(
                each.member_id,
                each.group_instance_id or None,
                each.client_id,
                each.host.removeprefix("/"),
                tuple(sorted((at.topic, at.partition) for at in each.assignment.topic_partitions)),
            )
            for each in raw.members
        ),
    )


def _broker_of(raw: Any) -> BrokerDescription:
    return BrokerDescription(int(raw.id), raw.host, raw.port, getattr(raw, "rack", None))
