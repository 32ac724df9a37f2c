"""The way back to the classic protocol, when the last member of the new one has gone.

The group ends with tombstones and begins anew with one `GroupMetadata` in which every member
has what it had. Its generation is the group's epoch, so epochs never go back.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headrace.coordinators.groups.consumer.membership import FoundMember, removal
from headrace.coordinators.groups.consumer.state import GroupState
from headrace.coordinators.groups.consumer_protocol import (
    MemberAssignment,
    decode_subscription,
    encode_assignment,
)
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import CONSUMER_PROTOCOL_TYPE, GroupOutcome, TopicsView
from headrace.coordinators.groups.records import (
    Assignment,
    ClassicMember,
    ClassicProtocols,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    GroupMetadata,
    GroupRecord,
    ResolvedRegex,
    TargetAssignmentEpoch,
    Tombstone,
)

Protocols = tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class Downgrade(GroupOutcome):
    """An outcome after which the group is the classic one that `group` describes."""

    group: GroupMetadata = field(kw_only=True)
    protocols: Mapping[str, Protocols] = field(kw_only=True)  # all that each member speaks
    needs_rebalance: bool = field(kw_only=True)


def must_downgrade(state: GroupState, limits: ConsumerLimits, leaving: Collection[str]) -> bool:
    """Whether only classic members are left once these have gone, and the broker allows it."""
    left = len(state.members) - len(leaving)
    classic_left = state.classic_count - sum(
        state.members[member_id].classic is not None for member_id in leaving
    )
    return left == classic_left and 0 < left <= limits.classic_max_size and limits.may_downgrade


def must_downgrade_for(
    state: GroupState, limits: ConsumerLimits, replaced: ConsumerGroupMember
) -> bool:
    """The same, when a classic member takes the place of `replaced`, the last of the others."""
    return (
        replaced.classic is None
        and state.classic_count == len(state.members) - 1
        and len(state.members) <= limits.classic_max_size
        and limits.may_downgrade
    )


def tombstones(state: GroupState) -> list[GroupRecord]:
    """The end of all records of a group."""
    group_id = state.group_id
    records: list[GroupRecord] = []
    for member_id in state.members:
        records += removal(group_id, member_id)
    records.append(Tombstone(TargetAssignmentEpoch, (group_id,)))
    records += [Tombstone(ResolvedRegex, (group_id, regex)) for regex in state.regexes]
    records.append(Tombstone(ConsumerGroupMetadata, (group_id,)))
    return records


def downgrade(
    state: GroupState,
    topics: TopicsView,
    now_ms: int,
    *,
    without: Collection[str],
    joining: FoundMember | None = None,
    needs_rebalance: bool,
) -> Downgrade:
    """The records of the change, and the classic group as it is after it."""
    members = {
        member_id: (member, state.current_of(member_id).assigned)
        for member_id, member in state.members.items()
        if member_id not in without
    }
    if joining is not None:
        members[joining.member.member_id] = (joining.member, joining.current.assigned)
    spoken = {member_id: _classic(member) for member_id, (member, _) in members.items()}
    chosen = _choose_protocol({one: found.protocols for one, found in spoken.items()})
    group = GroupMetadata(
        state.group_id,
        CONSUMER_PROTOCOL_TYPE,
        state.epoch,
        chosen,
        next(iter(members)),
        now_ms,
        tuple(
            _classic_member(member, spoken[member_id], chosen, assigned, topics)
            for member_id, (member, assigned) in members.items()
        ),
    )
    return Downgrade(
        [*tombstones(state), group],
        group=group,
        protocols={member_id: found.protocols for member_id, found in spoken.items()},
        needs_rebalance=needs_rebalance,
    )


def encode_for(protocols: Protocols, assigned: Assignment, topics: TopicsView) -> bytes:
    """An assignment as a classic member reads it: by name, in the version it speaks."""
    by_name = {
        shape.name: partitions
        for topic_id, partitions in assigned.items()
        if (shape := topics.shape_by_id(topic_id)) is not None
    }
    version = decode_subscription(protocols[0][1]).version
    return encode_assignment(MemberAssignment(by_name, version=version))


def _classic(member: ConsumerGroupMember) -> ClassicProtocols:
    assert member.classic is not None, "only a group of classic members becomes classic"
    return member.classic


def _choose_protocol(protocols: Mapping[str, Protocols]) -> str:
    """Each member votes for the first of its protocols that all speak."""
    common = set.intersection(*({name for name, _ in found} for found in protocols.values()))
    votes = Counter(
        next(name for name, _ in found if name in common) for found in protocols.values()
    )
    return votes.most_common(1)[0][0]


def _classic_member(
    member: ConsumerGroupMember,
    spoken: ClassicProtocols,
    chosen: str,
    assigned: Assignment,
    topics: TopicsView,
) -> ClassicMember:
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        spoken.session_timeout_ms,
        dict(spoken.protocols)[chosen],
        encode_for(spoken.protocols, assigned, topics),
    )
