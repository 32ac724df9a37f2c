"""Requests that name much are served with turns of the event loop for others in between."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.metadata.v10.request import MetadataRequest
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i16, i32, i64
from tests.at_once import at_once
from tests.broker.turn_counter import turns_during

from headrace.broker.dispatch import APIS
from headrace.broker.handlers import metadata
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.log import directory as log_directory

COUNT = 40
NAMES = [TopicName(f"t{number}") for number in range(COUNT)]
PARTITIONS = tuple(map(i32, range(COUNT)))
GROUPS = tuple(GroupId(f"g{number}") for number in range(COUNT))
T = TopicName("t")

REQUESTS: dict[str, tuple[int, int, Callable[[], Any]]] = {
    "Metadata": (
        3,
        12,
        lambda: MetadataRequest(
            topics=None,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        ),
    ),
    "OffsetFetch": (
        9,
        9,
        lambda: OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id=GROUPS[0],
                    member_id=None,
                    topics=(OffsetFetchRequestTopics(name=T, partition_indexes=PARTITIONS),),
                ),
            ),
            require_stable=False,
        ),
    ),
    "DescribeGroups": (
        15,
        6,
        lambda: DescribeGroupsRequest(groups=GROUPS, include_authorized_operations=False),
    ),
    "CreateTopics": (
        19,
        7,
        lambda: CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(
                    name=TopicName(f"new-{name}"),
                    num_partitions=i32(1),
                    replication_factor=i16(1),
                    assignments=(),
                    configs=(),
                )
                for name in NAMES
            ),
            timeout=NO_THROTTLE,
        ),
    ),
    "DeleteTopics": (
        20,
        6,
        lambda: DeleteTopicsRequest(
            topics=tuple(DeleteTopicState(name=name, topic_id=None) for name in NAMES),
            timeout=NO_THROTTLE,
        ),
    ),
    "DeleteRecords": (
        21,
        2,
        lambda: DeleteRecordsRequest(
            topics=(
                DeleteRecordsTopic(
                    name=T,
                    partitions=tuple(
                        DeleteRecordsPartition(partition_index=one, offset=i64(0))
                        for one in PARTITIONS
                    ),
                ),
            ),
            timeout=NO_THROTTLE,
        ),
    ),
    "OffsetForLeaderEpoch": (
        23,
        4,
        lambda: OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(
                    topic=T,
                    partitions=tuple(
                        OffsetForLeaderPartition(partition=one, leader_epoch=i32(0))
                        for one in PARTITIONS
                    ),
                ),
            )
        ),
    ),
    "DescribeConfigs": (
        32,
        4,
        lambda: DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(
                    resource_type=i8(2), resource_name=name, configuration_keys=None
                )
                for name in NAMES
            ),
            include_synonyms=True,
            include_documentation=False,
        ),
    ),
    "DescribeLogDirs": (35, 4, lambda: DescribeLogDirsRequest(topics=None)),
    "CreatePartitions": (
        37,
        3,
        lambda: CreatePartitionsRequest(
            topics=tuple(
                CreatePartitionsTopic(name=name, count=i32(2), assignments=None) for name in NAMES
            ),
            timeout=NO_THROTTLE,
            validate_only=False,
        ),
    ),
    "DeleteGroups": (42, 2, lambda: DeleteGroupsRequest(groups_names=GROUPS)),
    "ElectLeaders": (
        43,
        2,
        lambda: ElectLeadersRequest(
            election_type=i8(0),
            topic_partitions=(TopicPartitions(topic=T, partitions=PARTITIONS),),
            timeout=NO_THROTTLE,
        ),
    ),
    "AlterPartitionReassignments": (
        45,
        1,
        lambda: AlterPartitionReassignmentsRequest(
            timeout=NO_THROTTLE,
            topics=(
                ReassignableTopic(
                    name=T,
                    partitions=tuple(
                        ReassignablePartition(partition_index=one, replicas=None)
                        for one in PARTITIONS
                    ),
                ),
            ),
        ),
    ),
    "ConsumerGroupDescribe": (
        69,
        1,
        lambda: ConsumerGroupDescribeRequest(group_ids=GROUPS, include_authorized_operations=False),
    ),
    "ListConfigResources": (74, 1, lambda: ListConfigResourcesRequest(resource_types=())),
    "DescribeTopicPartitions": (
        75,
        0,
        lambda: DescribeTopicPartitionsRequest(topics=(), cursor=None),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_names_much_gives_others_their_turns(
    name: str, broker: BrokerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(broker.topics.create("t", COUNT, {}))
    for topic in NAMES:
        at_once(broker.topics.create(topic, 1, {}))
    monkeypatch.setattr(metadata, "_WRITTEN_AT_ONCE", COUNT // 2)
    key, version, request = REQUESTS[name]
    context = RequestContext(key, version, "client", "127.0.0.1")

    async def serve() -> None:
        answer = APIS[key].handler()(request(), broker, context)
        assert inspect.iscoroutine(answer)
        await answer

    assert turns_during(serve(), monkeypatch) >= COUNT // 2 - 1


def test_sizes_of_partitions_nobody_has_opened_are_asked_for_in_a_thread(
    broker: BrokerState, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(broker.topics.create("t", 3, {}))
    threads: list[int] = []
    measure = log_directory._size

    def note(directory: Any) -> int:
        threads.append(threading.get_ident())
        return measure(directory)

    monkeypatch.setattr(log_directory, "_size", note)

    ask(35, DescribeLogDirsRequest(topics=None))

    assert len(threads) == 3
    assert threading.get_ident() not in threads


def test_a_topic_made_by_asking_for_it_is_made_once(broker: BrokerState, ask_all: Any) -> None:
    request = metadata.MetadataRequest(
        topics=(metadata.MetadataRequestTopic(name=T, topic_id=None),),
        allow_auto_topic_creation=True,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )

    answers = ask_all(*[(3, request, 12)] * 5)

    ids = {answer.topics[0].topic_id for answer in answers}
    assert ids == {broker.topics.get("t").topic_id}
    assert asyncio.run(broker.topics.drain()) is None
