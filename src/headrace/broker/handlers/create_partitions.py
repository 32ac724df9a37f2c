"""CreatePartitions (37), v0-3.

v2  flexible encoding
v3  THROTTLING_QUOTA_EXCEEDED as an error

The timeout is not needed: the partitions are there before the answer is written.
"""

from collections import Counter

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kio.schema.errors import ErrorCode

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.replica_assignment import check_assignments
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import Broker, RequestContext
from headrace.errors import HeadraceError, InvalidReplicaAssignmentError, RequestError

VERSIONS = range(0, 4)


def handle(
    request: CreatePartitionsRequest, broker: Broker, context: RequestContext
) -> CreatePartitionsResponse:
    """Add partitions to each topic that can have them, and say of each what became of it."""
    times_asked = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    for asked in request.topics:
        error_code, message = ErrorCode.none, None
        try:
            if times_asked[asked.name] > 1:
                raise RequestError("Duplicate topic name.")
            _check(asked, broker)
            if not request.validate_only:
                broker.topics.add_partitions(asked.name, asked.count)
        except HeadraceError as error:
            error_code, message = code_for(error), str(error)
        results[asked.name] = CreatePartitionsTopicResult(
            name=asked.name, error_code=error_code, error_message=message
        )
    return CreatePartitionsResponse(throttle_time=NO_THROTTLE, results=tuple(results.values()))


def _check(asked: CreatePartitionsTopic, broker: Broker) -> None:
    broker.topics.check_partition_increase(asked.name, asked.count)
    if asked.assignments is None:
        return
    additional = asked.count - broker.topics.get(asked.name).partition_count
    if len(asked.assignments) != additional:
        raise InvalidReplicaAssignmentError(
            f"Attempted to add {additional} additional partition(s), "
            f"but only {len(asked.assignments)} assignment(s) were specified."
        )
    check_assignments([row.broker_ids for row in asked.assignments], broker.node_id)
