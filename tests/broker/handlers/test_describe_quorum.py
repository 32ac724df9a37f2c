from typing import Any

import pytest
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

DESCRIBE_QUORUM = 55
METADATA_LOG = ("__cluster_metadata", (0,))


def a_request(*topics: tuple[str, tuple[int, ...]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=tuple(
            TopicData(
                topic_name=name,
                partitions=tuple(PartitionData(partition_index=index) for index in partitions),
            )
            for name, partitions in topics
        )
    )


def the_partition(answer: Any) -> Any:
    ((partition,),) = (topic.partitions for topic in answer.topics)
    return partition


@pytest.mark.parametrize("version", VERSIONS["describe_quorum"])
def test_every_version_names_this_node_as_leader_and_only_voter(
    version: int, broker: BrokerState, ask: Any
) -> None:
    answer = ask(DESCRIBE_QUORUM, a_request(METADATA_LOG), version)

    assert answer.error_code == ErrorCode.none
    assert [topic.topic_name for topic in answer.topics] == ["__cluster_metadata"]
    partition = the_partition(answer)
    assert (partition.partition_index, partition.error_code) == (0, ErrorCode.none)
    assert (partition.leader_id, partition.leader_epoch, partition.observers) == (5, 1, ())
    (voter,) = partition.current_voters
    assert voter.replica_id == 5
    assert voter.log_end_offset == partition.high_watermark > 0
    if version >= 1:
        assert voter.last_caught_up_timestamp == voter.last_fetch_timestamp
        assert 0 <= broker.now_ms() - voter.last_fetch_timestamp < 60_000
    if version >= 2:
        assert (answer.error_message, partition.error_message) == ("", "")
        (node,) = answer.nodes
        (listener,) = node.listeners
        assert (listener.name, listener.host, listener.port) == ("PLAINTEXT", "broker.test", 9092)


def test_the_end_offset_rises_with_each_change_of_topics(broker: BrokerState, ask: Any) -> None:
    def end_offset() -> int:
        offset: int = the_partition(ask(DESCRIBE_QUORUM, a_request(METADATA_LOG))).high_watermark
        return offset

    first = end_offset()
    at_once(broker.topics.create("t", 1, {}))
    second = end_offset()
    at_once(broker.topics.delete("t"))

    assert first < second < end_offset()


@pytest.mark.parametrize("version", VERSIONS["describe_quorum"])
@pytest.mark.parametrize(
    "asked",
    [
        [("t", (0,))],
        [("nope", (0, 1))],
        [("__cluster_metadata", (1,))],
        [("__cluster_metadata", (0, 1))],
        [METADATA_LOG, ("t", (0,))],
        [METADATA_LOG, METADATA_LOG],
    ],
)
def test_who_asks_for_more_or_else_is_told_nothing(
    asked: list[tuple[str, tuple[int, ...]]], version: int, broker: BrokerState, ask: Any
) -> None:
    at_once(broker.topics.create("t", 1, {}))

    answer = ask(DESCRIBE_QUORUM, a_request(*asked), version)

    assert answer.error_code == ErrorCode.none
    told = [
        (topic.topic_name, tuple(one.partition_index for one in topic.partitions))
        for topic in answer.topics
    ]
    assert told == asked
    for topic in answer.topics:
        for one in topic.partitions:
            assert one.error_code == ErrorCode.unknown_topic_or_partition
            assert one.current_voters == ()
            if version >= 2:
                assert one.error_message == "This server does not host this topic-partition."
    if version >= 2:
        assert answer.nodes == ()
