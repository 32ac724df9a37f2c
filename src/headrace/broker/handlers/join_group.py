"""JoinGroup (11).

v1  rebalance_timeout_ms in the request; before it is the session time-out
v4  a newcomer is sent back with an id to join with (KIP-394)
v5  group_instance_id (KIP-345)
v7  protocol_type in the answer; protocol_name may be null
v8  reason in the request (KIP-800)
v9  skip_assignment in the answer (KIP-814)
"""

from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse, JoinGroupResponseMember
from kio.static.primitive import i32

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.coordinators.errors import GroupError
from headrace.coordinators.groups.messages import JoinReply, JoinRequest
from headrace.protocol.schema import MILLISECOND

_REBALANCE_TIMEOUT_SINCE = 1
_MEMBER_ID_REQUIRED_SINCE = 4
_NULL_PROTOCOL_SINCE = 7
_SKIPS_ASSIGNMENT_SINCE = 9


async def handle(
    request: JoinGroupRequest, broker: BrokerState, context: RequestContext
) -> JoinGroupResponse:
    """Wait until the group's next generation begins."""
    version = context.api_version
    session_timeout_ms = request.session_timeout // MILLISECOND
    join = JoinRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=context.client_id,
        client_host=context.member_host,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=(
            request.rebalance_timeout // MILLISECOND
            if version >= _REBALANCE_TIMEOUT_SINCE
            else session_timeout_ms
        ),
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        reason=request.reason,
        must_know_its_id=version >= _MEMBER_ID_REQUIRED_SINCE,
        can_skip_assignment=version >= _SKIPS_ASSIGNMENT_SINCE,
    )
    try:
        reply = await broker.groups.join(join)
    except GroupError as error:
        reply = JoinReply(error, member_id=request.member_id)
    return _response(reply, version)


def _response(reply: JoinReply, version: int) -> JoinGroupResponse:
    protocol_name = reply.protocol_name
    if protocol_name is None and version < _NULL_PROTOCOL_SINCE:
        protocol_name = ""
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=code_for(reply.error),
        generation_id=i32(reply.generation_id),
        protocol_type=reply.protocol_type,
        protocol_name=protocol_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in reply.members
        ),
    )
