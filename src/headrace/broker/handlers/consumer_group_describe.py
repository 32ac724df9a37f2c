"""ConsumerGroupDescribe (69), KIP-848.

v1  member_type: classic members may be in the group, too
"""

from dataclasses import replace

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32

from headrace.broker.error_codes import code_for
from headrace.broker.errors import TopicError
from headrace.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.coordinators.errors import GroupError, InvalidGroupIdError
from headrace.coordinators.groups.messages import DescribedConsumer
from headrace.coordinators.groups.records import Assignment as Partitions


async def handle(
    request: ConsumerGroupDescribeRequest, broker: BrokerState, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    """Show each group's epochs, members and assignments."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    groups = [await _describe(group_id, broker) async for group_id in in_slices(request.group_ids)]
    return ConsumerGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_with_operations(group, operations) for group in groups),
    )


async def _describe(group_id: GroupId, broker: BrokerState) -> DescribedGroup:
    try:
        if not group_id:
            raise InvalidGroupIdError
        await broker.groups.ready(group_id)
        group = broker.groups.coordinator.describe_consumer(group_id)
    except GroupError as error:
        return DescribedGroup(
            error_code=code_for(error),
            error_message=str(error) or None,
            group_id=group_id,
            group_state="",
            group_epoch=i32(0),
            assignment_epoch=i32(0),
            assignor_name="",
            members=(),
        )
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=group_id,
        group_state=group.state,
        group_epoch=i32(group.epoch),
        assignment_epoch=i32(group.assignment_epoch),
        assignor_name=group.assignor,
        members=tuple(_member(member, broker) for member in group.members),
    )


def _with_operations(group: DescribedGroup, operations: i32) -> DescribedGroup:
    if group.error_code is not ErrorCode.none:
        return group
    return replace(group, authorized_operations=operations)


def _member(member: DescribedConsumer, broker: BrokerState) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=i32(member.member_epoch),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(map(TopicName, member.topic_names)),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(member.assignment, broker),
        target_assignment=_assignment(member.target_assignment, broker),
        member_type=i8(member.member_type),
    )


def _assignment(partitions: Partitions, broker: BrokerState) -> Assignment:
    described = []
    for topic_id, numbers in partitions.items():
        try:
            name = broker.topics.get_by_id(topic_id).name
        except TopicError:
            continue  # deleted since
        described.append(
            TopicPartitions(
                topic_id=topic_id,
                topic_name=TopicName(name),
                partitions=tuple(map(i32, numbers)),
            )
        )
    return Assignment(topic_partitions=tuple(described))
