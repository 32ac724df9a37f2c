"""A group as administrators see it."""

from headrace.coordinators.groups.consumer.limits import ConsumerLimits
from headrace.coordinators.groups.consumer.state import NOTHING, GroupState
from headrace.coordinators.groups.consumer.target import preferred_assignor
from headrace.coordinators.groups.messages import (
    CONSUMER_PROTOCOL_TYPE,
    DescribedConsumer,
    DescribedConsumerGroup,
    ListedGroup,
)
from headrace.coordinators.groups.records import Assignment, CurrentAssignment

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def state_of(state: GroupState) -> str:
    """Kafka's name of the group's state."""
    if state.is_void:
        return "Dead"
    if not state.members:
        return "Empty"
    if state.epoch > state.assignment_epoch:
        return "Assigning"
    if all(map(state.is_reconciled, state.members)):
        return "Stable"
    return "Reconciling"


def listed(state: GroupState) -> ListedGroup:
    """The group as ListGroups shows it."""
    return ListedGroup(state.group_id, CONSUMER_PROTOCOL_TYPE, state_of(state), "consumer")


def describe(state: GroupState, limits: ConsumerLimits) -> DescribedConsumerGroup:
    """The group as ConsumerGroupDescribe shows it."""
    return DescribedConsumerGroup(
        state.group_id,
        state_of(state),
        state.epoch,
        state.assignment_epoch,
        preferred_assignor(state.members, limits),
        tuple(_describe_member(state, member_id) for member_id in state.members),
    )


def _describe_member(state: GroupState, member_id: str) -> DescribedConsumer:
    member, current = state.members[member_id], state.current_of(member_id)
    return DescribedConsumer(
        member_id,
        member.instance_id,
        member.rack_id,
        current.member_epoch,
        member.client_id,
        member.client_host,
        member.topic_names,
        member.topic_regex or "",
        _held(current),
        state.target.get(member_id, NOTHING),
        _CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _held(current: CurrentAssignment) -> Assignment:
    """What a member has, with what it has still to give up."""
    held = dict(current.assigned)
    for topic, partitions in current.pending_revocation.items():
        held[topic] = tuple(sorted(held.get(topic, ()) + partitions))
    return held
