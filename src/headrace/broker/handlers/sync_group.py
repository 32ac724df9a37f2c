"""SyncGroup (14).

v3  group_instance_id (KIP-345)
v5  protocol_type and protocol_name, in the request and in the answer (KIP-559)
"""

from kio.schema.errors import ErrorCode
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.coordinators.errors import GroupError
from headrace.coordinators.groups.messages import SyncReply, SyncRequest

_PROTOCOL_REQUIRED_SINCE = 5


async def handle(
    request: SyncGroupRequest, broker: BrokerState, context: RequestContext
) -> SyncGroupResponse:
    """Wait until the leader has brought the assignments."""
    is_without_protocol = request.protocol_type is None or request.protocol_name is None
    if context.api_version >= _PROTOCOL_REQUIRED_SINCE and is_without_protocol:
        return _response(SyncReply(None), ErrorCode.inconsistent_group_protocol)
    sync = SyncRequest(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=tuple((one.member_id, one.assignment) for one in request.assignments),
    )
    try:
        reply = await broker.groups.sync(sync)
    except GroupError as error:
        reply = SyncReply(error)
    return _response(reply, code_for(reply.error))


def _response(reply: SyncReply, error_code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=error_code,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
