"""DeleteGroups (42).

v2  flexible encoding
"""

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeletableGroupResult, DeleteGroupsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import GroupId

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.coordinators.errors import GroupError


async def handle(
    request: DeleteGroupsRequest, broker: BrokerState, context: RequestContext
) -> DeleteGroupsResponse:
    """Delete each group that has no members, with its offsets."""
    results = []
    async for group_id in in_slices(dict.fromkeys(request.groups_names)):
        error_code = await _delete(group_id, broker)
        results.append(DeletableGroupResult(group_id=group_id, error_code=error_code))
    return DeleteGroupsResponse(throttle_time=NO_THROTTLE, results=tuple(results))


async def _delete(group_id: GroupId, broker: BrokerState) -> ErrorCode:
    groups = broker.groups
    try:
        await groups.ready(group_id)
        now_ms = groups.clock.steady_ms()
        await groups.carry_out(groups.coordinator.delete_group(group_id, now_ms))
    except GroupError as error:
        return code_for(error)
    return ErrorCode.none
