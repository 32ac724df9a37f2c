"""DescribeGroups (15): classic groups.

v3  authorized operations (KIP-430)
v4  group_instance_id of members (KIP-345)
v6  a group that is not there is an error, with a message (KIP-1043); before it was Dead
"""

from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import GroupId

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.coordinators.errors import GroupError, GroupNotFoundError

_NOT_FOUND_SINCE = 6
_DEAD = "Dead"


async def handle(
    request: DescribeGroupsRequest, broker: BrokerState, context: RequestContext
) -> DescribeGroupsResponse:
    """Show each group's state and members."""
    groups = []
    async for group_id in in_slices(request.groups):
        groups.append(
            await _describe(
                group_id, broker, context.api_version, request.include_authorized_operations
            )
        )
    return DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=tuple(groups))


async def _describe(
    group_id: GroupId, broker: BrokerState, version: int, with_operations: bool
) -> DescribedGroup:
    operations = GROUP_OPERATIONS if with_operations else NOT_ASKED
    try:
        await broker.groups.ready(group_id)
        group = broker.groups.coordinator.describe_classic(group_id)
    except GroupNotFoundError as error:
        is_error = version >= _NOT_FOUND_SINCE
        return DescribedGroup(
            error_code=code_for(error) if is_error else ErrorCode.none,
            error_message=str(error) if is_error else None,
            group_id=group_id,
            group_state=_DEAD,
            protocol_type="",
            protocol_data="",
            members=(),
            authorized_operations=NOT_ASKED if is_error else operations,
        )
    except GroupError as error:
        return DescribedGroup(
            error_code=code_for(error),
            group_id=group_id,
            group_state="",
            protocol_type="",
            protocol_data="",
            members=(),
        )
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ),
        authorized_operations=operations,
    )
