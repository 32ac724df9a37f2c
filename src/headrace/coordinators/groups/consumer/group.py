"""A group of the new protocol (KIP-848).

Event-sourced: a step reads the state and returns records; when they are written, `apply` takes
them in. What a step may change at once is soft: deadlines and what has been looked at.
"""

from collections.abc import Callable, Iterable, Sequence

from headrace.coordinators.errors import (
    GroupError,
    IllegalGenerationError,
    NonEmptyGroupError,
    StaleMemberEpochError,
)
from headrace.coordinators.groups.consumer.classic_members import ClassicMembers
from headrace.coordinators.groups.consumer.core import Core
from headrace.coordinators.groups.consumer.downgrade import tombstones
from headrace.coordinators.groups.consumer.fencing import fence
from headrace.coordinators.groups.consumer.heartbeats import Heartbeats
from headrace.coordinators.groups.consumer.membership import known_member
from headrace.coordinators.groups.consumer.reconciliation import with_epochs
from headrace.coordinators.groups.consumer.resolution import Resolution
from headrace.coordinators.groups.consumer.state import NOTHING, UNREVOKED_PARTITIONS
from headrace.coordinators.groups.consumer.subscriptions import group_topics
from headrace.coordinators.groups.consumer.target import preferred_assignor
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    DescribedConsumer,
    DescribedConsumerGroup,
    GroupOutcome,
    GroupSummary,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    SyncRequest,
    Ticket,
    TopicsView,
)
from headrace.coordinators.groups.records import (
    Assignment,
    ConsumerGroupMember,
    CurrentAssignment,
    GroupRecord,
    Tombstone,
)

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


class ConsumerGroup:
    """One group. Not thread-safe: it belongs to the event loop."""

    def __init__(
        self,
        group_id: str,
        limits_for: Callable[[], ConsumerLimits],
        *,
        make_member_id: Callable[[str], str],
        now_ms: int = 0,
    ) -> None:
        self.group_id = group_id
        self.created_ms = now_ms
        self._core = Core(group_id, limits_for, make_member_id)
        self._state = self._core.state
        self.resolution: Resolution = self._core.resolution
        self._heartbeats = Heartbeats(self._core)
        self._classic = ClassicMembers(self._core)

    # -- the new protocol

    def heartbeat(
        self, request: ConsumerHeartbeatRequest, topics: TopicsView, now_ms: int
    ) -> tuple[ConsumerHeartbeatReply, GroupOutcome]:
        """Answer a ConsumerGroupHeartbeat: a sign of life, a join or a leave."""
        return self._heartbeats.answer(request, topics, now_ms)

    # -- the classic protocol

    def join(
        self, request: JoinRequest, ticket: Ticket, topics: TopicsView, now_ms: int
    ) -> GroupOutcome:
        """Answer a JoinGroup. It is never parked: the broker assigns, no one has to wait."""
        return self._classic.join(request, ticket, topics, now_ms)

    def sync(
        self, request: SyncRequest, ticket: Ticket, topics: TopicsView, now_ms: int
    ) -> GroupOutcome:
        """Answer a SyncGroup."""
        return self._classic.sync(request, ticket, topics, now_ms)

    def classic_heartbeat(
        self, member_id: str, group_instance_id: str | None, generation_id: int, now_ms: int
    ) -> None:
        """Answer a Heartbeat; raises when the member has to join again, or is not one."""
        self._classic.heartbeat(member_id, group_instance_id, generation_id, now_ms)

    def leave(
        self, members: Sequence[LeavingMember], topics: TopicsView, now_ms: int
    ) -> tuple[list[LeaveResult], GroupOutcome]:
        """Answer a LeaveGroup. Administrators remove members of both protocols with it."""
        return self._classic.leave(members, topics, now_ms)

    # -- records and time

    def apply(self, record: GroupRecord) -> None:
        """Take in a record that is written. Nothing else changes durable state."""
        self._state.apply(record)
        if isinstance(record, Tombstone) and record.kind is ConsumerGroupMember:
            self._core.deadlines.forget(str(record.key[1]))

    def loaded(self, now_ms: int) -> None:
        """After the replay: members have a whole session to be heard of."""
        session_timeout_ms = self._core.limits_for().session_timeout_ms
        for member_id, member in self._state.members.items():
            own = member.classic.session_timeout_ms if member.classic else session_timeout_ms
            self._core.deadlines.session(member_id, now_ms + own)
            if member.classic is None:
                self._core.watch_revocation(member, self._state.current_of(member_id), now_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` wants to be called: may be early, never late."""
        return self._core.deadlines.next_ms

    def tick(self, topics: TopicsView, now_ms: int) -> GroupOutcome:
        """Fence members that were not heard of, or did not give up partitions, in time."""
        if not self._core.deadlines.is_due(now_ms):
            return GroupOutcome()
        revoking = {
            member_id: current.member_epoch
            for member_id, current in self._state.current.items()
            if current.state == UNREVOKED_PARTITIONS
        }
        overdue = self._core.deadlines.overdue(now_ms, self._state.members, revoking)
        return fence(self._state, self._core.limits_for(), overdue, topics, now_ms)

    def tombstones(self) -> list[GroupRecord]:
        """The end of this group's records."""
        return tombstones(self._state)

    # -- what others want to know

    @property
    def epoch(self) -> int:
        """The group's epoch: subscriptions and topics as they are now."""
        return self._state.epoch

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self._state.members

    @property
    def is_void(self) -> bool:
        """Whether its records say that it is gone."""
        return self._state.is_void

    @property
    def member_count(self) -> int:
        """Members of both protocols."""
        return len(self._state.members)

    def has_consumer(self, member_id: str) -> bool:
        """Whether a member of this id speaks the new protocol."""
        member = self._state.members.get(member_id)
        return member is not None and member.classic is None

    @property
    def state(self) -> str:
        """Kafka's name of the group's state."""
        state = self._state
        if state.is_void:
            return "Dead"
        if not state.members:
            return "Empty"
        if state.epoch > state.assignment_epoch:
            return "Assigning"
        if all(map(state.is_reconciled, state.members)):
            return "Stable"
        return "Reconciling"

    def describe(self) -> DescribedConsumerGroup:
        """The group as ConsumerGroupDescribe shows it."""
        state = self._state
        return DescribedConsumerGroup(
            state.group_id,
            self.state,
            state.epoch,
            state.assignment_epoch,
            preferred_assignor(state.members, self._core.limits_for()),
            tuple(map(self._describe_member, state.members)),
        )

    def _describe_member(self, member_id: str) -> DescribedConsumer:
        state = self._state
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

    def listed(self) -> GroupSummary:
        """The group as ListGroups shows it."""
        return GroupSummary(self.group_id, CONSUMER_PROTOCOL_TYPE, self.state, "consumer")

    def subscribed_topics(self) -> frozenset[str]:
        """All that members subscribe to."""
        return frozenset(group_topics(self._state, self._state.regexes))

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to it."""
        return topic in self._state.name_counts or topic in self.subscribed_topics()

    def check_delete(self) -> None:
        """Raise unless the group may be deleted."""
        if self._state.members:
            raise NonEmptyGroupError(f"Group {self.group_id} is not empty.")

    # -- who may commit offsets, and ask for them

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        epoch: int,
        *,
        partitions: Iterable[tuple[str, int]] = (),
        topics: TopicsView | None = None,
        is_transactional: bool = False,
    ) -> None:
        """Raise unless this member may commit these offsets in this epoch (or generation).

        A member commits in its epoch. An older one is good for partitions that it had then and
        still has (Kafka 4.2): a commit that was under way when the epoch changed is not lost.
        """
        state = self._state
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
                f"Received {_word(member)} {epoch} is newer than "
                f"current member epoch {member_epoch}."
            )
        if topics is None:
            raise _refusal(member)(
                f"The received {_word(member)} {epoch} does not match "
                f"the expected member epoch {member_epoch}."
            )
        _check_partitions(member, state.current_of(member_id), epoch, partitions, topics)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise unless this member may ask for committed offsets. Who is no member may always."""
        if member_id is None and member_epoch < 0:
            return
        member = known_member(self._state, member_id or "")
        expected = self._state.current_of(member.member_id).member_epoch
        if member_epoch != expected:
            raise _refusal(member)(
                f"The received {_word(member)} {member_epoch} does not match "
                f"the expected member epoch {expected}."
            )


def _check_partitions(
    member: ConsumerGroupMember,
    current: CurrentAssignment,
    epoch: int,
    partitions: Iterable[tuple[str, int]],
    topics: TopicsView,
) -> None:
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


def _held(current: CurrentAssignment) -> Assignment:
    """What a member has, with what it has still to give up."""
    held = dict(current.assigned)
    for topic, partitions in current.pending_revocation.items():
        held[topic] = tuple(sorted(held.get(topic, ()) + partitions))
    return held
