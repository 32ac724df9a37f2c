"""Metadata and what describes the cluster, on both engines."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.wire import (
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_TOPIC_PARTITIONS,
    METADATA,
    Engine,
    WireClient,
    batch_of,
)

NONE, UNKNOWN_TOPIC, INVALID_TOPIC, UNKNOWN_TOPIC_ID = 0, 3, 17, 100
NO_OPERATIONS = -(2**31)


def metadata(
    wire: WireClient, version: int, names: list[str] | None, *, may_create: bool = False
) -> Any:
    topics = None if names is None else [{"name": name} for name in names]
    if version >= 10 and topics is not None:
        topics = [{"topic_id": None, **topic} for topic in topics]
    fields: dict[str, Any] = {"topics": topics}
    if version >= 4:
        fields["allow_auto_topic_creation"] = may_create
    if version >= 8:
        fields["include_topic_authorized_operations"] = False
    if 8 <= version <= 10:
        fields["include_cluster_authorized_operations"] = False
    return wire.call(METADATA, version, **fields)


@pytest.mark.parametrize("version", range(14))
def test_every_version_names_the_leader_of_every_partition(
    wire: WireClient, new_topic: Callable[..., str], engine: Engine, version: int
) -> None:
    topic = new_topic(partitions=3)

    answer = metadata(wire, version, [topic])

    (broker,) = answer.brokers
    assert f"{broker.host}:{broker.port}" == engine.bootstrap
    (described,) = answer.topics
    assert (described.error_code, described.name) == (NONE, topic)
    partitions = sorted(described.partitions, key=lambda part: part.partition_index)
    assert [part.partition_index for part in partitions] == [0, 1, 2]
    for part in partitions:
        assert (part.error_code, part.leader_id) == (NONE, broker.node_id)
        assert part.replica_nodes == part.isr_nodes == (broker.node_id,)
    if version >= 1:
        assert not described.is_internal
        assert answer.controller_id == broker.node_id
    if version >= 2:
        assert answer.cluster_id
    if version >= 7:
        assert [part.leader_epoch for part in partitions] == [0, 0, 0]
    if version >= 10:
        assert described.topic_id is not None


def test_which_topics_an_empty_list_means_changed_with_v1(wire: WireClient, topic: str) -> None:
    def names(version: int, asked: list[str] | None) -> set[str]:
        return {part.name for part in metadata(wire, version, asked).topics}

    assert topic in names(0, [])
    assert names(1, []) == set()
    assert topic in names(1, None)
    assert names(12, []) == set()
    assert topic in names(12, None)


def test_a_topic_is_made_only_for_those_who_may(wire: WireClient) -> None:
    name = f"t-{uuid.uuid4()}"

    (forbidden,) = metadata(wire, 4, [name]).topics
    (still_unknown,) = metadata(wire, 4, [name]).topics
    (allowed,) = metadata(wire, 4, [name], may_create=True).topics
    while allowed.error_code == UNKNOWN_TOPIC:  # real Kafka makes it after the answer
        (allowed,) = metadata(wire, 4, [name], may_create=True).topics

    assert (forbidden.error_code, still_unknown.error_code) == (UNKNOWN_TOPIC, UNKNOWN_TOPIC)
    assert (allowed.error_code, len(allowed.partitions)) == (NONE, 1)


@pytest.mark.parametrize("name", ["a/b", "", "..", "x" * 250])
def test_a_name_no_topic_can_have_is_invalid(wire: WireClient, name: str) -> None:
    (answer,) = metadata(wire, 4, [name], may_create=True).topics

    assert answer.error_code == INVALID_TOPIC


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_is_found_by_its_id(wire: WireClient, topic: str, version: int) -> None:
    def by_id(topic_id: uuid.UUID) -> Any:
        return wire.call(
            METADATA,
            version,
            topics=[{"topic_id": topic_id, "name": None}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        ).topics[0]

    known, unknown = by_id(wire.topic_id(topic)), by_id(uuid.uuid4())

    assert (known.error_code, known.name) == (NONE, topic)
    assert (unknown.error_code, unknown.name) == (UNKNOWN_TOPIC_ID, None)


def test_operations_are_told_only_to_those_who_ask(wire: WireClient, topic: str) -> None:
    topics = [{"topic_id": None, "name": topic}]

    def operations(wanted: bool) -> int:
        answer = wire.call(
            METADATA,
            13,
            topics=topics,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=wanted,
        )
        return int(answer.topics[0].topic_authorized_operations)

    assert operations(False) == NO_OPERATIONS
    # Without an authorizer everyone may do everything: bits 3-8, 10 and 11.
    assert operations(True) == 0b110111111000


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_this_one_broker(wire: WireClient, engine: Engine, version: int) -> None:
    fields: dict[str, Any] = {"include_cluster_authorized_operations": False}
    if version >= 1:
        fields["endpoint_type"] = 1
    if version >= 2:
        fields["include_fenced_brokers"] = False

    answer = wire.call(DESCRIBE_CLUSTER, version, **fields)

    assert answer.error_code == NONE
    assert answer.cluster_id == metadata(wire, 12, []).cluster_id
    (broker,) = answer.brokers
    assert f"{broker.host}:{broker.port}" == engine.bootstrap
    assert answer.controller_id == broker.broker_id


def describe_partitions(wire: WireClient, names: list[str], **changes: Any) -> Any:
    topics = [{"name": name} for name in names]
    fields = {"topics": topics, "response_partition_limit": 2000, "cursor": None, **changes}
    return wire.call(DESCRIBE_TOPIC_PARTITIONS, 0, **fields)


def test_partitions_are_described_page_by_page(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(partitions=5)

    first = describe_partitions(wire, [topic], response_partition_limit=3)
    cursor = first.next_cursor
    second = describe_partitions(
        wire,
        [topic],
        cursor={"topic_name": cursor.topic_name, "partition_index": cursor.partition_index},
    )

    pages = [
        [part.partition_index for part in page.topics[0].partitions] for page in (first, second)
    ]
    assert pages == [[0, 1, 2], [3, 4]]
    assert second.next_cursor is None


def test_topics_are_described_in_the_order_of_their_names(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    names = sorted(new_topic() for _ in range(3))

    answer = describe_partitions(wire, [*reversed(names), "no-such-topic"])

    described = [(topic.name, int(topic.error_code)) for topic in answer.topics]
    assert described == sorted(
        [*((name, NONE) for name in names), ("no-such-topic", UNKNOWN_TOPIC)]
    )


@pytest.mark.parametrize("version", range(1, 6))
def test_the_size_of_a_partition_is_the_bytes_in_its_log(
    wire: WireClient, topic: str, version: int
) -> None:
    batch = batch_of(10)
    wire.produce(topic, batch)
    wire.produce(topic, batch)

    answer = wire.call(DESCRIBE_LOG_DIRS, version, topics=[{"topic": topic, "partitions": [0]}])

    (log_dir,) = answer.results
    (described,) = log_dir.topics
    (partition,) = described.partitions
    assert (log_dir.error_code, described.name) == (NONE, topic)
    assert (partition.partition_index, partition.partition_size) == (0, 2 * len(batch))
    assert (partition.offset_lag, partition.is_future_key) == (0, False)
    if version >= 4:
        assert 0 < log_dir.usable_bytes <= log_dir.total_bytes
