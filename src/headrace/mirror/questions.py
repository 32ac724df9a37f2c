"""What is asked of an end and told to it: topics, configs, offsets."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headrace.client.error_table import is_unknown
from headrace.mirror.end import End
from headrace.mirror.errors import MirrorError
from headrace.model import TopicPartition, known_topic_id

_DEFAULT = -1  # what Kafka takes for "as the broker is configured"
_DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"


class TopicFacts(NamedTuple):
    """One topic; `configs` are those set on it, not the broker's defaults.

    `topic_id` is empty where the broker knows none.
    """

    name: str
    topic_id: str
    partition_count: int
    replication_factor: int
    configs: dict[str, str]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(self.partition_count)]


def cluster_id(end: End) -> str:
    """The cluster's own name for itself, as it is told now."""
    described = end.ask_admin(lambda: end.admin.describe_cluster(request_timeout=end.timeout_s))
    found = described.cluster_id
    if not found:
        raise MirrorError(f"{end.label} tells no cluster id, so a loop could not be noticed")
    return str(found)


def topic_names(end: End) -> list[str]:
    """All topics but Kafka's own."""
    names = end.ask(lambda: list(end.admin.list_topics(timeout=end.timeout_s).topics))
    return sorted(name for name in names if not name.startswith("__"))


def topics(end: End, names: Iterable[str]) -> dict[str, TopicFacts]:
    """The facts of those of the topics that exist."""
    wanted = sorted(names)
    if not wanted:
        return {}
    described = _described(end, wanted)
    configs = _configs(end, sorted(described))
    return {
        name: TopicFacts(
            name,
            known_topic_id(str(each.topic_id)),
            len(each.partitions),
            min((len(one.replicas) for one in each.partitions), default=0),
            configs.get(name, {}),
        )
        for name, each in described.items()
    }


def topic_ids(end: End, names: Iterable[str]) -> dict[str, str]:
    """The ids of those of the topics that exist; empty where the broker knows none.

    Asked often and over broker deaths: of librdkafka's questions this is one that goes to no
    coordinator (see `End.admin`).
    """
    wanted = sorted(names)
    if not wanted:
        return {}
    return {
        name: known_topic_id(str(each.topic_id)) for name, each in _described(end, wanted).items()
    }


def has_dead_in_sync_replicas(end: End, names: Iterable[str]) -> bool:
    """Whether an in-sync replica lies on a broker that is not there: the end offset then stands
    still although the leader holds more."""
    metadata = end.ask(lambda: end.admin.list_topics(timeout=end.timeout_s))
    return any(
        partition.leader < 0 or not set(partition.isrs) <= metadata.brokers.keys()
        for name in names
        if name in metadata.topics
        for partition in metadata.topics[name].partitions.values()
    )


def first_offsets(end: End, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where each log starts."""
    return _offsets(end, partitions, is_first=True)


def end_offsets(end: End, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where each log ends for those who read committed messages only."""
    return _offsets(end, partitions, is_first=False)


def create_topic(
    end: End,
    name: str,
    partitions: int,
    replication_factor: int | None,
    configs: Mapping[str, str],
) -> None:
    """Create a topic; one that is there already is fine."""
    from confluent_kafka import KafkaException
    from confluent_kafka.cimpl import NewTopic

    topic: Any = NewTopic(name, partitions, replication_factor or _DEFAULT, config=dict(configs))

    def create() -> None:
        futures = end.admin.create_topics([topic], request_timeout=end.timeout_s)
        try:
            end.result(futures[name])
        except KafkaException as error:
            # An earlier try may have worked although its answer was lost.
            if error.args[0].code() != error.args[0].TOPIC_ALREADY_EXISTS:
                raise

    end.ask(create)


def grow_topic(end: End, name: str, partitions: int) -> None:
    """Give a topic more partitions."""
    from confluent_kafka.cimpl import NewPartitions

    wanted: Any = NewPartitions(name, partitions)
    end.ask_admin(
        lambda: end.admin.create_partitions([wanted], request_timeout=end.timeout_s)[name]
    )


def alter_configs(end: End, name: str, wanted: Mapping[str, str | None]) -> None:
    """Set configs of a topic; None returns one to its default."""
    from confluent_kafka import admin as _admin

    kafka: Any = _admin
    operations = kafka.AlterConfigOpType
    entries = [
        kafka.ConfigEntry(
            key, value, incremental_operation=operations.DELETE if value is None else operations.SET
        )
        for key, value in wanted.items()
    ]
    resource = kafka.ConfigResource(kafka.ResourceType.TOPIC, name, incremental_configs=entries)
    end.ask_admin(
        lambda: next(
            iter(
                end.admin.incremental_alter_configs(
                    [resource], request_timeout=end.timeout_s
                ).values()
            )
        )
    )


def delete_records(end: End, partition: TopicPartition, before: int) -> None:
    """Let a log start at an offset."""
    from confluent_kafka import TopicPartition as Place

    places = [Place(*partition, before)]
    end.ask_admin(
        lambda: next(iter(end.admin.delete_records(places, request_timeout=end.timeout_s).values()))
    )


def _described(end: End, names: list[str]) -> dict[str, Any]:
    from confluent_kafka import KafkaException, TopicCollection

    def ask() -> dict[str, Any]:
        futures = end.admin.describe_topics(TopicCollection(names), request_timeout=end.timeout_s)
        found = dict[str, Any]()
        for name, future in futures.items():
            try:
                found[name] = end.result(future)
            except KafkaException as error:
                if not is_unknown(error.args[0]):
                    raise
        return found

    return end.ask(ask)


def _configs(end: End, names: list[str]) -> dict[str, dict[str, str]]:
    from confluent_kafka import admin as _admin

    kafka: Any = _admin

    def read(name: str) -> dict[str, str]:
        resource = kafka.ConfigResource(kafka.ResourceType.TOPIC, name)
        entries = end.ask_admin(
            lambda: next(
                iter(end.admin.describe_configs([resource], request_timeout=end.timeout_s).values())
            )
        )
        return {
            entry.name: entry.value
            for entry in entries.values()
            if kafka.ConfigSource(entry.source).name == _DYNAMIC_TOPIC_CONFIG
            and entry.value is not None
        }

    return {name: read(name) for name in names}


def _offsets(
    end: End, partitions: Iterable[TopicPartition], *, is_first: bool
) -> dict[TopicPartition, int]:
    from confluent_kafka import IsolationLevel, KafkaError, KafkaException
    from confluent_kafka import TopicPartition as Place
    from confluent_kafka import admin as _admin

    kafka: Any = _admin
    spec = kafka.OffsetSpec.earliest() if is_first else kafka.OffsetSpec.latest()
    asked = {Place(*partition): spec for partition in partitions}
    if not asked:
        return {}

    def ask() -> dict[TopicPartition, int]:
        futures = end.admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=end.timeout_s
        )
        found = {
            TopicPartition(place.topic, place.partition): end.result(future).offset
            for place, future in futures.items()
        }
        if min(found.values()) < 0:  # what librdkafka says instead of an error, now and then
            raise KafkaException(KafkaError(KafkaError.OFFSET_NOT_AVAILABLE))
        return found

    return end.ask(ask)
