import io
from collections import namedtuple
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.delete_topics.v3.request import DeleteTopicsRequest as DeleteTopicsV3
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v1.request import ListOffsetsPartition, ListOffsetsRequest
from kio.schema.list_offsets.v1.request import ListOffsetsTopic as ListOffsetsTopicV1
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.metadata.v13.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32

from headrace.broker.dispatch import APIS
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.protocol.codec import decode_request, encode_response, is_heavier
from headrace.protocol.errors import WireError
from headrace.protocol.versions import FIRST_FLEXIBLE, is_flexible

METADATA = MetadataResponse(
    throttle_time=timedelta(0),
    brokers=(MetadataResponseBroker(node_id=1, host="h", port=9092, rack=None),),
    cluster_id="c",
    controller_id=1,
    topics=(
        MetadataResponseTopic(
            error_code=ErrorCode.none,
            name="t",
            topic_id=UUID(int=5),
            is_internal=False,
            partitions=(
                MetadataResponsePartition(
                    error_code=ErrorCode.none,
                    partition_index=0,
                    leader_id=1,
                    leader_epoch=0,
                    replica_nodes=(1,),
                    isr_nodes=(1,),
                    offline_replicas=(),
                ),
            ),
        ),
    ),
    error_code=ErrorCode.none,
)


def written(entity: object) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@pytest.mark.parametrize("version", range(14))
def test_a_newest_response_is_written_as_every_older_version_has_it(version: int) -> None:
    body = encode_response(3, version, METADATA)

    response, used = entity_reader(load_response_schema(3, version))(body, 0)

    assert used == len(body)
    topic = response.topics[0]
    assert (response.brokers[0].host, topic.name) == ("h", "t")
    assert topic.partitions[0].replica_nodes == (1,)
    assert getattr(topic, "topic_id", UUID(int=5)) == UUID(int=5)


def test_an_old_request_is_lifted_with_the_schemas_defaults() -> None:
    old = ListOffsetsRequest(
        replica_id=-1,
        topics=(
            ListOffsetsTopicV1(
                name="t", partitions=(ListOffsetsPartition(partition_index=2, timestamp=-2),)
            ),
        ),
    )

    lifted = decode_request(2, 1, 11, written(old), 0)

    assert type(lifted) is load_request_schema(2, 11)
    assert lifted.isolation_level == 0
    assert lifted.topics[0].partitions[0].timestamp == -2
    assert lifted.topics[0].partitions[0].current_leader_epoch == -1


def test_topics_named_in_an_old_delete_request_are_found() -> None:
    old = DeleteTopicsV3(topic_names=("a", "b"), timeout=timedelta(seconds=1))

    lifted = decode_request(20, 3, 6, written(old), 0)

    assert [topic.name for topic in lifted.topics] == ["a", "b"]


@pytest.mark.parametrize("key", sorted(APIS))
def test_the_flexible_versions_are_those_of_kafkas_schemas(key: int) -> None:
    versions = [v for v in APIS[key].versions if key != 0 or v >= 3]

    flexible = {version: load_request_schema(key, version).__flexible__ for version in versions}

    assert flexible == {version: is_flexible(key, version) for version in versions}


def test_every_served_api_has_a_flexible_version() -> None:
    assert set(FIRST_FLEXIBLE) == set(APIS)


@given(st.sampled_from([key for key in sorted(APIS) if key > 1]), st.binary(max_size=120))
def test_random_bytes_are_read_or_refused_as_wire_error(key: int, body: bytes) -> None:
    for version in (APIS[key].versions[0], APIS[key].versions[-1]):
        try:
            request = decode_request(key, version, APIS[key].versions[-1], body, 0)
        except WireError:
            continue
        assert type(request) is load_request_schema(key, APIS[key].versions[-1])


def test_bytes_behind_the_request_are_ignored_as_kafka_does() -> None:
    old = DeleteTopicsV3(topic_names=("a",), timeout=timedelta(seconds=1))

    lifted = decode_request(20, 3, 6, written(old) + b"\0\1\0", 0)

    assert [topic.name for topic in lifted.topics] == ["a"]


def test_unknown_tagged_fields_are_skipped() -> None:
    body = b"\x01\x00" + b"\x01" + b"\x63\x02hi"  # no topics, a flag, one tag 99

    request = decode_request(3, 9, 13, b"\x01\x01\x00\x00" + body[2:], 0)

    assert request.topics == ()


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (3, 1, b"\x7f\xff\xff\xff"),
        (3, 13, b"\xff\xff\xff\xff\x0f"),
        (2, 1, b"\xff\xff\xff\xff\x7f\xff\xff\xff"),
        (20, 1, b"\x7f\xff\xff\xff\x00\x00"),
    ],
)
def test_an_absurd_array_length_is_refused_before_anything_is_allocated(
    key: int, version: int, body: bytes
) -> None:
    with pytest.raises(WireError, match="does not fit"):
        decode_request(key, version, APIS[key].versions[-1], body, 0)


def test_more_elements_than_one_request_may_hold_are_refused() -> None:
    count = 100_001
    body = count.to_bytes(4, "big") + b"\x00\x01a" * count

    with pytest.raises(WireError, match="array elements"):
        decode_request(3, 1, 13, body, 0)


Answer = namedtuple("Answer", "error topics")


def listed(topics: int, partitions: int) -> ListOffsetsResponse:
    one = ListOffsetsPartitionResponse(partition_index=i32(0), error_code=0)
    topic = ListOffsetsTopicResponse(name="t", partitions=(one,) * partitions)
    return ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=(topic,) * topics)


@pytest.mark.parametrize(
    ("topics", "partitions", "limit", "expected"),
    [(0, 0, 0, False), (3, 4, 15, False), (3, 4, 14, True), (100, 0, 99, True), (1, 99, 99, True)],
)
def test_elements_are_counted_at_any_depth(
    topics: int, partitions: int, limit: int, expected: bool
) -> None:
    assert is_heavier(listed(topics, partitions), limit) is expected


def test_named_tuples_are_messages_too_and_numbers_count_as_one_each() -> None:
    assert is_heavier(Answer(0, (listed(1, 5),)), 6)
    assert not is_heavier(Answer(0, (1, 2, 3)), 3)
    assert not is_heavier(None, 0)
