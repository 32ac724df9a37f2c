from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.model import Topic
from headrace.protocol.codec import encode_response
from headrace.protocol.metadata import MetadataWriter

METADATA = 3
NODE_ID = 70_000
TOPICS = [
    Topic("t", UUID(int=1), 1, {}),
    Topic("größe", UUID(int=2), 300, {}, is_internal=True, leader_epoch=9),
    Topic("n" * 249, UUID(int=3), 2, {}),
]


def a_response(*topics: MetadataResponseTopic) -> MetadataResponse:
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=(
            MetadataResponseBroker(
                node_id=BrokerId(NODE_ID), host="host", port=i32(9092), rack="r1"
            ),
        ),
        cluster_id="cluster",
        controller_id=BrokerId(NODE_ID),
        topics=topics,
        cluster_authorized_operations=i32(8096),
    )


def as_kio_has_it(topic: Topic, operations: int) -> MetadataResponseTopic:
    leader = BrokerId(NODE_ID)
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(partition),
                leader_id=leader,
                leader_epoch=i32(topic.leader_epoch),
                replica_nodes=(leader,),
                isr_nodes=(leader,),
                offline_replicas=(),
            )
            for partition in range(topic.partition_count)
        ),
        topic_authorized_operations=i32(operations),
    )


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("times", [0, 1, 50])
def test_topics_are_written_as_kio_writes_them(version: int, times: int) -> None:
    operations = 3400
    writer = MetadataWriter(version, NODE_ID, operations)
    topics = TOPICS * times
    expected = a_response(*(as_kio_has_it(topic, operations) for topic in topics))

    without = encode_response(METADATA, version, a_response())
    written = writer.fill(without, [writer.topic(topic) for topic in topics])

    assert written == encode_response(METADATA, version, expected)
    assert encode_response(METADATA, version, written) is written


@pytest.mark.parametrize(
    ("version", "name", "topic_id"),
    [
        *((version, "t", None) for version in range(14)),
        *((version, None, UUID(int=5)) for version in (12, 13)),  # by id
    ],
)
def test_refusals_are_written_as_kio_writes_them(
    version: int, name: str | None, topic_id: UUID | None
) -> None:
    writer = MetadataWriter(version, NODE_ID, 7)
    expected = MetadataResponseTopic(
        error_code=ErrorCode.unknown_topic_or_partition,
        name=name,  # type: ignore[arg-type]
        topic_id=topic_id,
        is_internal=True,
        partitions=(),
        # As in Kafka, of an id that nobody knows it is not said what may be done.
        topic_authorized_operations=i32(7 if topic_id is None else -(2**31)),
    )

    refusal = writer.refusal(3, name, topic_id, is_internal=True)

    written = writer.fill(encode_response(METADATA, version, a_response()), [refusal])
    assert written == encode_response(METADATA, version, a_response(expected))
