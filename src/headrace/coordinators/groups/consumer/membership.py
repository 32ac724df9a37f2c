"""Who a request is from: epochs, static members that return, and those that are fenced."""

from typing import NamedTuple

from headrace.coordinators.errors import (
    FencedInstanceError,
    FencedMemberEpochError,
    GroupFullError,
    UnknownMemberError,
    UnreleasedInstanceError,
)
from headrace.coordinators.groups.consumer.state import NOTHING, GroupState
from headrace.coordinators.groups.consumer.validation import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.records import (
    Assignment,
    ConsumerGroupMember,
    CurrentAssignment,
    GroupRecord,
    TargetAssignmentMember,
    Tombstone,
)


class FoundMember(NamedTuple):
    """A member, what it has, and what it takes to put it in the place of another."""

    member: ConsumerGroupMember
    current: CurrentAssignment
    records: tuple[GroupRecord, ...] = ()


def newcomer(group_id: str, member_id: str) -> ConsumerGroupMember:
    """A member that has told nothing yet."""
    return ConsumerGroupMember(group_id, member_id, None, None, "", "", (), None, -1, None)


def refuse_if_full(state: GroupState, limits: ConsumerLimits, member_id: str) -> None:
    """Those who are in may stay."""
    if len(state.members) >= limits.max_size and member_id not in state.members:
        raise GroupFullError(
            f"The consumer group has reached its maximum capacity of {limits.max_size} members."
        )


def known_member(state: GroupState, member_id: str) -> ConsumerGroupMember:
    """The member of this id."""
    member = state.members.get(member_id)
    if member is None:
        raise UnknownMemberError(f"Member {member_id} is not a member of group {state.group_id}.")
    return member


def known_static_member(state: GroupState, member_id: str, instance_id: str) -> ConsumerGroupMember:
    """The member of this instance id, if it is still the one that asks."""
    member = state.static_member(instance_id)
    if member is None:
        raise UnknownMemberError(f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise FencedInstanceError(
            f"Static member {member_id} with instance id {instance_id} "
            f"was fenced by member {member.member_id}."
        )
    return member


def joining_member(
    state: GroupState, member_id: str, instance_id: str | None, *, is_classic: bool
) -> FoundMember:
    """The member that joins: new, known, or one that takes the place of its instance."""
    before = state.static_member(instance_id)
    if before is None:
        member = state.members.get(member_id) or newcomer(state.group_id, member_id)
        return FoundMember(member, state.current_of(member_id))
    left_for_a_while = state.current_of(before.member_id).member_epoch == STATIC_LEAVE_EPOCH
    if not is_classic and before.classic is None and not left_for_a_while:
        raise UnreleasedInstanceError(
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {before.member_id} member."
        )
    return _replacement(state, before, member_id)


def _replacement(state: GroupState, before: ConsumerGroupMember, member_id: str) -> FoundMember:
    group_id = state.group_id
    member = before._replace(member_id=member_id)
    current = state.current_of(before.member_id)._replace(
        member_id=member_id, member_epoch=0, previous_member_epoch=0
    )
    target = state.target.get(before.member_id, NOTHING)
    records = (
        *removal(group_id, before.member_id),
        member,
        TargetAssignmentMember(group_id, member_id, target),
        current,
    )
    return FoundMember(member, current, records)


def removal(group_id: str, member_id: str) -> tuple[GroupRecord, ...]:
    """The end of a member."""
    key = (group_id, member_id)
    return (
        Tombstone(CurrentAssignment, key),
        Tombstone(TargetAssignmentMember, key),
        Tombstone(ConsumerGroupMember, key),
    )


def refuse_other_epoch(current: CurrentAssignment, epoch: int, owned: Assignment | None) -> None:
    """Fence a member whose epoch is not the one it has."""
    if epoch == JOIN_EPOCH or epoch == current.member_epoch:
        return
    if epoch > current.member_epoch:
        relation = "greater"
    elif epoch == current.previous_member_epoch and _is_subset(owned, current.assigned):
        return  # the answer with the new epoch may have been lost
    else:
        relation = "smaller"
    raise FencedMemberEpochError(
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({current.member_epoch}). "
        "The member must abandon all its partitions and rejoin."
    )


def _is_subset(owned: Assignment | None, assigned: Assignment) -> bool:
    if owned is None:
        return False
    return all(
        topic in assigned and set(partitions) <= set(assigned[topic])
        for topic, partitions in owned.items()
    )
