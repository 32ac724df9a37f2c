"""LeaveGroup (13).

v3  several members in one request, by id or group.instance.id (KIP-345)
v5  reason in the request (KIP-800)
"""

from kio.schema.errors import ErrorCode
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.coordinators.errors import GroupError, UnknownMemberError
from headrace.coordinators.groups.messages import LeaveResult, LeavingMember


async def handle(
    request: LeaveGroupRequest, broker: BrokerState, context: RequestContext
) -> LeaveGroupResponse:
    """Let members go; each has its own result."""
    members = [
        LeavingMember(one.member_id, one.group_instance_id, one.reason) for one in request.members
    ]
    groups = broker.groups
    try:
        await groups.ready(request.group_id)
        decision = groups.coordinator.leave(request.group_id, members, groups.clock.steady_ms())
        results = await groups.carry_out(decision)
    except UnknownMemberError as error:
        results = [LeaveResult(one.member_id, one.group_instance_id, error) for one in members]
    except GroupError as error:
        return LeaveGroupResponse(throttle_time=NO_THROTTLE, error_code=code_for(error), members=())
    return LeaveGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        members=tuple(
            MemberResponse(
                member_id=result.member_id,
                group_instance_id=result.group_instance_id,
                error_code=code_for(result.error),
            )
            for result in results
        ),
    )
