"""ListGroups (16).

v4  states_filter in the request, group_state in the answer (KIP-518)
v5  types_filter in the request, group_type in the answer (KIP-848)
"""

from kio.schema.errors import ErrorCode
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup, ListGroupsResponse
from kio.schema.types import GroupId

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.coordinators.errors import GroupError


async def handle(
    request: ListGroupsRequest, broker: BrokerState, context: RequestContext
) -> ListGroupsResponse:
    """Show all groups in these states and of these types; without a filter, all."""
    try:
        await broker.groups.all_ready()
    except GroupError as error:
        return ListGroupsResponse(throttle_time=NO_THROTTLE, error_code=code_for(error), groups=())
    states = {state.lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    listed = []
    async for group in in_slices(list(broker.groups.coordinator.registry.groups())):
        shown = group.listed()
        if (not states or shown.state.lower() in states) and (
            not types or shown.group_type.lower() in types
        ):
            listed.append(
                ListedGroup(
                    group_id=GroupId(shown.group_id),
                    protocol_type=shown.protocol_type,
                    group_state=shown.state,
                    group_type=shown.group_type,
                )
            )
    return ListGroupsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, groups=tuple(listed)
    )
