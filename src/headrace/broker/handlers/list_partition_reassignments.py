"""ListPartitionReassignments (46).

A reassignment to the one broker is done before its answer is written: none is ever under way.
Topics that are not there are passed over, as in Kafka.
"""

from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext


def handle(
    request: ListPartitionReassignmentsRequest, broker: BrokerState, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """List none."""
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, error_message=None, topics=()
    )
