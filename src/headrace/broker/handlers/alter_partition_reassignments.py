"""AlterPartitionReassignments (45).

v1  allow_replication_factor_change (KIP-860)

The one broker there is has every partition already. To reassign one to it is done at once, so
there is never a reassignment under way that could be cancelled. The replication factor cannot
change either: more replicas than one need a broker that is not there.
"""

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.errors import ErrorCode

from headrace.broker.errors import InvalidReplicaAssignmentError
from headrace.broker.handlers.replica_assignment import check_assignments
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices


async def handle(
    request: AlterPartitionReassignmentsRequest, broker: BrokerState, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Say of each partition whether it could lie where it is wanted."""
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.none,
        # Kafka's own answer to nothing asked is an empty text, not null.
        error_message=None if request.topics else "",
        responses=tuple(
            [
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        [
                            _result(topic.name, asked, broker)
                            async for asked in in_slices(topic.partitions)
                        ]
                    ),
                )
                for topic in request.topics
            ]
        ),
    )


def _result(
    topic: str, asked: ReassignablePartition, broker: BrokerState
) -> ReassignablePartitionResponse:
    error_code, message = _verdict(topic, asked, broker)
    return ReassignablePartitionResponse(
        partition_index=asked.partition_index, error_code=error_code, error_message=message
    )


def _verdict(
    topic: str, asked: ReassignablePartition, broker: BrokerState
) -> tuple[ErrorCode, str | None]:
    partition = asked.partition_index
    if not broker.topics.has(topic):
        missing = f"Unable to find a topic named {topic}."
        return ErrorCode.unknown_topic_or_partition, missing
    if not 0 <= partition < broker.topics.get(topic).partition_count:
        missing = f"Unable to find partition {topic}:{partition}."
        return ErrorCode.unknown_topic_or_partition, missing
    if asked.replicas is None:
        return ErrorCode.no_reassignment_in_progress, None
    try:
        check_assignments([asked.replicas], broker.node_id)
    except InvalidReplicaAssignmentError as error:
        return ErrorCode.invalid_replica_assignment, str(error)
    return ErrorCode.none, None
