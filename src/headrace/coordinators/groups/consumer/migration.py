"""A classic group becomes one of the new protocol, and back, while its members go on.

Up: someone joins a classic group with the new protocol. Down: the last such member goes.
"""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from headrace.coordinators.errors import GroupNotFoundError
from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.classic.member import Member
from headrace.coordinators.groups.consumer.downgrade import Downgrade
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.consumer.state import STABLE
from headrace.coordinators.groups.consumer.subscriptions import metadata_hash
from headrace.coordinators.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
)
from headrace.coordinators.groups.limits import ClassicLimits, ConsumerLimits
from headrace.coordinators.groups.messages import CONSUMER_PROTOCOL_TYPE, GroupOutcome, TopicsView
from headrace.coordinators.groups.records import (
    Assignment,
    ClassicProtocols,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    GroupMetadata,
    GroupRecord,
    TargetAssignmentEpoch,
    TargetAssignmentMember,
    Tombstone,
)
from headrace.protocol.errors import WireError


class Upgrade(NamedTuple):
    """A group as it is after the change: `records` are to be written, and are already in it."""

    group: ConsumerGroup
    records: list[GroupRecord]


def upgrade(
    classic: ClassicGroup,
    topics: TopicsView,
    limits_for: Callable[[], ConsumerLimits],
    *,
    make_member_id: Callable[[str], str],
    now_ms: int,
) -> Upgrade:
    """Make a group of the new protocol from a classic one, which stays as it is."""
    group = ConsumerGroup(
        classic.group_id, limits_for, make_member_id=make_member_id, now_ms=now_ms
    )
    records: list[GroupRecord] = [Tombstone(GroupMetadata, (classic.group_id,))]
    if not classic.is_empty:
        _refuse_if_not_eligible(classic, limits_for())
        records += _members_records(classic, topics)
    for record in records[1:]:
        group.apply(record)
    group.loaded(now_ms)
    return Upgrade(group, records)


def downgraded(
    outcome: Downgrade,
    limits: ClassicLimits,
    *,
    make_member_id: Callable[[str], str],
    now_ms: int,
) -> tuple[ClassicGroup, GroupOutcome]:
    """The classic group that a written `Downgrade` leaves behind, with its members in it."""
    group = ClassicGroup.restore(
        outcome.group,
        limits,
        make_member_id=make_member_id,
        now_ms=now_ms,
        protocols=outcome.protocols,
    )
    return group, group.rebalance(now_ms) if outcome.needs_rebalance else GroupOutcome()


def _refuse_if_not_eligible(classic: ClassicGroup, limits: ConsumerLimits) -> None:
    if not limits.may_upgrade:
        reason = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > limits.max_size:
        reason = "the group size exceeds the consumer group maximum size"
    else:
        return
    raise GroupNotFoundError(
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
    )


def _members_records(classic: ClassicGroup, topics: TopicsView) -> list[GroupRecord]:
    """The classic group told in records of the new protocol. Its generation is the epoch."""
    group_id, epoch = classic.group_id, classic.generation_id
    try:
        members = [
            _consumer_member(group_id, member, _subscription(member, classic.protocol_name))
            for member in classic.members.values()
        ]
        assigned = {
            member.member_id: _assigned(member.assignment, topics)
            for member in classic.members.values()
        }
    except WireError as error:
        raise GroupNotFoundError(
            f"Cannot upgrade the classic group {group_id} to consumer group because the embedded "
            "consumer protocol is malformed."
        ) from error
    names = {name for member in members for name in member.topic_names}
    return [
        *members,
        ConsumerGroupMetadata(group_id, epoch, metadata_hash(names, topics)),
        *(TargetAssignmentMember(group_id, one, found) for one, found in assigned.items()),
        TargetAssignmentEpoch(group_id, epoch),
        *(
            CurrentAssignment(
                group_id,
                member_id,
                epoch,
                epoch,
                STABLE,
                found,
                {},
                {topic: (epoch,) * len(partitions) for topic, partitions in found.items()},
                {},
            )
            for member_id, found in assigned.items()
        ),
    ]


def _subscription(member: Member, protocol_name: str | None) -> Subscription:
    chosen = dict(member.protocols).get(protocol_name or "", member.protocols[0][1])
    return decode_subscription(chosen)


def _consumer_member(
    group_id: str, member: Member, subscription: Subscription
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        group_id,
        member.member_id,
        member.group_instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
        None,
        member.rebalance_timeout_ms,
        None,
        ClassicProtocols(member.session_timeout_ms, tuple(member.protocols)),
    )


def _assigned(assignment: bytes, topics: TopicsView) -> Assignment:
    if not assignment:
        return {}
    decoded = decode_assignment(assignment)
    if decoded.user_data:
        raise WireError("userData from a custom assignor would be lost")
    found: dict[UUID, tuple[int, ...]] = {}
    for name, partitions in decoded.partitions.items():
        shape = topics.shape(name)
        if shape is not None:
            found[shape.topic_id] = tuple(sorted(partitions))
    return found
