"""CreatePartitions (37).

v2  flexible encoding
v3  THROTTLING_QUOTA_EXCEEDED as an error

The timeout is not needed: the partitions are there before the answer is written.
"""

from collections import Counter
from functools import partial

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName

from headrace.broker.error_codes import code_for
from headrace.broker.errors import InvalidReplicaAssignmentError
from headrace.broker.handlers.replica_assignment import check_assignments
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError, RequestError


async def handle(
    request: CreatePartitionsRequest, broker: BrokerState, context: RequestContext
) -> CreatePartitionsResponse:
    """Add partitions to each topic that can have them, and say of each what became of it."""
    return await broker.topics.changes.make(partial(_create, request, broker))


async def _create(
    request: CreatePartitionsRequest, broker: BrokerState
) -> CreatePartitionsResponse:
    times_asked = Counter(topic.name for topic in request.topics)
    verdicts: dict[TopicName, HeadraceError | None] = {}
    wanted: dict[str, int] = {}
    additional = 0
    async for asked in in_slices(request.topics):
        try:
            if times_asked[asked.name] > 1:
                raise RequestError("Duplicate topic name.")
            additional += _check(asked, broker, additional)
        except HeadraceError as error:
            verdicts[asked.name] = error
        else:
            verdicts[asked.name] = None
            wanted[asked.name] = asked.count
    if not request.validate_only:
        try:
            await broker.topics.add_partitions(wanted)
        except HeadraceError as error:
            verdicts |= {name: error for name, verdict in verdicts.items() if verdict is None}
    return CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(_result(name, verdict) for name, verdict in verdicts.items()),
    )


def _result(name: TopicName, error: HeadraceError | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=ErrorCode.none if error is None else code_for(error),
        error_message=None if error is None else str(error),
    )


def _check(asked: CreatePartitionsTopic, broker: BrokerState, planned: int) -> int:
    """Return how many partitions the topic gets, beside those that are `planned` for others."""
    broker.topics.check_partition_increase(asked.name, asked.count, planned)
    additional = asked.count - broker.topics.get(asked.name).partition_count
    if asked.assignments is not None:
        if len(asked.assignments) != additional:
            raise InvalidReplicaAssignmentError(
                f"Attempted to add {additional} additional partition(s), "
                f"but only {len(asked.assignments)} assignment(s) were specified."
            )
        check_assignments([row.broker_ids for row in asked.assignments], broker.node_id)
    return additional
