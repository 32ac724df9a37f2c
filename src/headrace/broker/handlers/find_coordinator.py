"""FindCoordinator (10), v0-6.

v1  key types: group 0, transaction 1, share 2
v4  several keys in one request (KIP-699)

There is no coordinator yet: groups and transactions come with the next issues.
The answer is the one Kafka gives while its coordinator is not to be had, which
clients retry. It must be served all the same: librdkafka takes a broker
without it for one that cannot do lz4.
"""

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import Broker, RequestContext

VERSIONS = range(0, 7)
_NOBODY = -1


def handle(
    request: FindCoordinatorRequest, broker: Broker, context: RequestContext
) -> FindCoordinatorResponse:
    """Tell every key that it has no coordinator now."""
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(
            Coordinator(
                key=key,
                node_id=BrokerId(_NOBODY),
                host="",
                port=i32(_NOBODY),
                error_code=ErrorCode.coordinator_not_available,
                error_message="this broker has no group or transaction coordinator yet",
            )
            for key in request.coordinator_keys
        ),
    )
