"""Who may commit offsets, and ask for them.

A member commits in its epoch. An older one is good for partitions that it had then and still has
(Kafka 4.2): a commit that was under way when the epoch changed is not lost.
"""

from collections.abc import Iterable

from headrace.coordinators.groups.consumer.membership import known_member
from headrace.coordinators.groups.consumer.reconciliation import with_epochs
from headrace.coordinators.groups.consumer.state import GroupState
from headrace.coordinators.groups.messages import TopicsView
from headrace.coordinators.groups.records import ConsumerGroupMember
from headrace.errors import GroupError, IllegalGenerationError, StaleMemberEpochError


def check_commit(
    state: GroupState,
    member_id: str,
    group_instance_id: str | None,
    epoch: int,
    *,
    partitions: Iterable[tuple[str, int]] = (),
    topics: TopicsView | None = None,
    is_transactional: bool = False,
) -> None:
    """Raise unless the member may commit these partitions."""
    # Tools and consumers that assign themselves commit without being members.
    if epoch < 0 and not state.members:
        return
    if is_transactional and epoch == -1 and not member_id and group_instance_id is None:
        return
    member = known_member(state, member_id)
    member_epoch = state.current_of(member_id).member_epoch
    if epoch == member_epoch:
        return
    if epoch > member_epoch:
        raise _refusal(member)(
            f"Received {_word(member)} {epoch} is newer than current member epoch {member_epoch}."
        )
    if topics is None:
        raise _refusal(member)(
            f"The received {_word(member)} {epoch} does not match "
            f"the expected member epoch {member_epoch}."
        )
    _check_partitions(state, member, epoch, partitions, topics)


def check_fetch(state: GroupState, member_id: str | None, epoch: int) -> None:
    """Raise unless the member may ask for committed offsets. Who is no member may always."""
    if member_id is None and epoch < 0:
        return
    member = known_member(state, member_id or "")
    member_epoch = state.current_of(member.member_id).member_epoch
    if epoch != member_epoch:
        raise _refusal(member)(
            f"The received {_word(member)} {epoch} does not match "
            f"the expected member epoch {member_epoch}."
        )


def _check_partitions(
    state: GroupState,
    member: ConsumerGroupMember,
    epoch: int,
    partitions: Iterable[tuple[str, int]],
    topics: TopicsView,
) -> None:
    current = state.current_of(member.member_id)
    now = current.member_epoch
    assigned = with_epochs(current.assigned, current.assigned_epochs, now)
    pending = with_epochs(current.pending_revocation, current.pending_epochs, now)
    for name, partition in partitions:
        shape = topics.shape(name)
        since = None
        if shape is not None:
            since = assigned.get(shape.topic_id, {}).get(partition)
            if since is None:
                since = pending.get(shape.topic_id, {}).get(partition)
        if since is None:
            raise _refusal(member)(
                f"Partition {name}-{partition} is not assigned or pending revocation for member."
            )
        if epoch < since:
            raise _refusal(member)(
                f"Received {_word(member)} {epoch} is older than assignment epoch {since} "
                f"for partition {name}-{partition}."
            )


def _refusal(member: ConsumerGroupMember) -> type[GroupError]:
    return StaleMemberEpochError if member.classic is None else IllegalGenerationError


def _word(member: ConsumerGroupMember) -> str:
    return "member epoch" if member.classic is None else "generation id"
