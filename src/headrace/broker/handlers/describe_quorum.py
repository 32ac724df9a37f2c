"""DescribeQuorum (55).

v1  when each replica last fetched and was last caught up (KIP-836)
v2  error messages, directory ids, the voters' listeners (KIP-853)

The answer is that of a Kafka whose only node is broker and controller: it leads, it is the only
voter, it is always caught up. There is no metadata log here, the catalog stands in its place,
so some numbers have no source and are made up such that tools see a healthy quorum:
- the leader epoch is always 1, what Kafka's first election gives: nobody else was ever elected;
- high watermark and log end offset count the changes of topics since the process started, from 1
  on. They rise with each change, as a metadata log does, but begin anew with a restart;
- the listener is the one for clients, since there is none for controllers.
The directory id is zero, as with Kafka's `controller.quorum.voters`.
"""

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i64, u16

from headrace.broker.listeners import client_listener
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.topic_names import CLUSTER_METADATA_TOPIC

_FIRST_EPOCH = 1
_NO_ERROR = ""  # Kafka writes an empty text here, not null


def handle(
    request: DescribeQuorumRequest, broker: BrokerState, context: RequestContext
) -> DescribeQuorumResponse:
    """Describe the quorum of one, to who asks for its one partition and nothing else."""
    asked = [
        (topic.topic_name, [one.partition_index for one in topic.partitions])
        for topic in request.topics
    ]
    if asked != [(CLUSTER_METADATA_TOPIC, [0])]:
        topics = tuple(
            TopicData(topic_name=name, partitions=tuple(map(_unknown, partitions)))
            for name, partitions in asked
        )
        return DescribeQuorumResponse(
            error_code=ErrorCode.none, error_message=_NO_ERROR, topics=topics, nodes=()
        )
    quorum = TopicData(
        topic_name=TopicName(CLUSTER_METADATA_TOPIC), partitions=(_partition(broker),)
    )
    return DescribeQuorumResponse(
        error_code=ErrorCode.none,
        error_message=_NO_ERROR,
        topics=(quorum,),
        nodes=(_node(broker),),
    )


def _partition(broker: BrokerState) -> PartitionData:
    end_offset, now_ms = i64(broker.topics.generation + 1), i64(broker.now_ms())
    node_id = BrokerId(broker.node_id)
    return PartitionData(
        partition_index=i32(0),
        error_code=ErrorCode.none,
        error_message=_NO_ERROR,
        leader_id=node_id,
        leader_epoch=i32(_FIRST_EPOCH),
        high_watermark=end_offset,
        current_voters=(
            ReplicaState(
                replica_id=node_id,
                replica_directory_id=None,
                log_end_offset=end_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            ),
        ),
        observers=(),
    )


def _node(broker: BrokerState) -> Node:
    listener = Listener(
        name=client_listener(broker.settings).name,
        host=broker.advertised_host,
        port=u16(broker.advertised_port),
    )
    return Node(node_id=BrokerId(broker.node_id), listeners=(listener,))


def _unknown(partition: i32) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=ErrorCode.unknown_topic_or_partition,
        error_message="This server does not host this topic-partition.",
        leader_id=BrokerId(0),
        leader_epoch=i32(0),
        high_watermark=i64(0),
        current_voters=(),
        observers=(),
    )
