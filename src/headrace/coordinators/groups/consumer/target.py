"""The target assignment: what each member shall have, once all have reconciled."""

from collections import Counter

from headrace.coordinators.groups.consumer.assignors import ASSIGNORS
from headrace.coordinators.groups.consumer.assignors.spec import MemberSpec
from headrace.coordinators.groups.consumer.state import NOTHING, GroupState
from headrace.coordinators.groups.consumer.subscriptions import Regexes, topics_of
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import TopicsView
from headrace.coordinators.groups.records import Assignment, ConsumerGroupMember


def may_assign(state: GroupState, limits: ConsumerLimits, now_ms: int) -> bool:
    """Whether the last target is old enough: members that join together share one (KIP-1263)."""
    last_ms = state.assignment_timestamp_ms
    # A clock that was set back does not hold up a group.
    return last_ms == 0 or not last_ms <= now_ms < last_ms + limits.assignment_interval_ms


def preferred_assignor(members: dict[str, ConsumerGroupMember], limits: ConsumerLimits) -> str:
    """The assignor that most members ask for; the broker's first when none does."""
    votes = Counter(
        member.server_assignor
        for member in members.values()
        if member.server_assignor in limits.assignors
    )
    return max(limits.assignors, key=lambda name: votes[name])


def compute_target(
    state: GroupState,
    limits: ConsumerLimits,
    topics: TopicsView,
    regexes: Regexes,
    updated: ConsumerGroupMember,
) -> dict[str, Assignment]:
    """Targets of all members, `updated` among them as it is going to be."""
    members = dict(state.members)
    so_far = dict(state.target)
    replaced = state.static_members.get(updated.instance_id or "")
    if replaced is not None and replaced != updated.member_id:
        members.pop(replaced, None)
        so_far[updated.member_id] = so_far.pop(replaced, NOTHING)
    members[updated.member_id] = updated

    # Members mostly subscribe alike: look up each set of names once.
    names_of = {member_id: topics_of(member, regexes) for member_id, member in members.items()}
    shapes = {
        name: shape
        for name in sorted(frozenset[str]().union(*names_of.values()))
        if (shape := topics.shape(name)) is not None
    }
    ids = {
        names: frozenset(shapes[name].topic_id for name in names if name in shapes)
        for names in set(names_of.values())
    }
    specs = [
        MemberSpec(
            member_id, member.instance_id, ids[names_of[member_id]], so_far.get(member_id, NOTHING)
        )
        for member_id, member in members.items()
    ]
    counts = {shape.topic_id: shape.partition_count for shape in shapes.values()}
    return ASSIGNORS[preferred_assignor(members, limits)](specs, counts)
