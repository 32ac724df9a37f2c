"""FindCoordinator (10).

v1  key types: group 0, transaction 1; share 2 from v6 on
v4  several keys in one request (KIP-699)
v6  share groups (KIP-932)

Groups have this broker; their topic is made at the first question, as in Kafka. Transactions and
share groups come with later issues: the answer is the one Kafka gives while a coordinator is not to
be had, which clients retry.
"""

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.errors import HeadraceError

_BATCHED_SINCE = 4
_SHARE_SINCE = 6
_NOBODY = -1
_GROUP, _TRANSACTION, _SHARE = range(3)


async def handle(
    request: FindCoordinatorRequest, broker: BrokerState, context: RequestContext
) -> FindCoordinatorResponse:
    """Send groups here; tell every other key that it has no coordinator now."""
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(
            [
                await _find(request.key_type, key, broker, context)
                for key in request.coordinator_keys
            ]
        ),
    )


async def _find(
    key_type: int, key: str, broker: BrokerState, context: RequestContext
) -> Coordinator:
    if key_type == _GROUP:
        try:
            await broker.groups.offsets_topic.ensure()
        except HeadraceError:
            return _nobody(key, ErrorCode.coordinator_not_available, "")
        return Coordinator(
            key=key,
            node_id=BrokerId(broker.node_id),
            host=broker.advertised_host,
            port=i32(broker.advertised_port),
            error_code=ErrorCode.none,
            error_message="" if context.api_version >= _BATCHED_SINCE else "NONE",
        )
    is_share = key_type == _SHARE and context.api_version >= _SHARE_SINCE and _is_share_key(key)
    if key_type == _TRANSACTION or is_share:
        message = "this broker has no transaction or share group coordinator yet"
        return _nobody(key, ErrorCode.coordinator_not_available, message)
    message = f"there is no coordinator of type {key_type} for this key"
    return _nobody(key, ErrorCode.invalid_request, message)


def _is_share_key(key: str) -> bool:
    """Share groups ask for a partition: group:topic id:number."""
    parts = key.split(":")
    return len(parts) == 3 and all(parts) and parts[2].isdecimal()


def _nobody(key: str, error_code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=BrokerId(_NOBODY),
        host="",
        port=i32(_NOBODY),
        error_code=error_code,
        error_message=message,
    )
