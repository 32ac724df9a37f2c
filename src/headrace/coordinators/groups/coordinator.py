"""All groups of this broker: finds the group, knows its kind, and asks it.

A group is a `ClassicGroup` or a `ConsumerGroup` (KIP-848), and may turn from one into the other.
Classic groups change at once and are told when a write failed; groups of the new protocol, and
offsets, change only when `on_written` applies what was written. Nothing here does I/O.
"""

from collections.abc import Sequence
from typing import TypeVar

from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.consumer.migration import Downgrade, downgraded, upgrade
from headrace.coordinators.groups.consumer.resolution import Search
from headrace.coordinators.groups.consumer.validation import validate_heartbeat
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.messages import (
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    DescribedConsumerGroup,
    DescribedGroup,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    Outcome,
    SyncRequest,
    Ticket,
)
from headrace.coordinators.groups.records import GroupRecord
from headrace.coordinators.groups.registry import GroupRegistry, Surroundings
from headrace.errors import (
    CoordinatorNotAvailableError,
    GroupNotFoundError,
    InvalidGroupIdError,
    RebalanceInProgressError,
    UnknownMemberError,
)

_Reply = TypeVar("_Reply")

# A group whose step could not be written, and so still is due, is woken again after this time.
_RETRY_MS = 1_000
_JOINS = 0


def _rebalancing() -> RebalanceInProgressError:
    return RebalanceInProgressError("The group is rebalancing, so a rejoin is needed.")


class GroupCoordinator(GroupRegistry):
    """Single-threaded. Every method that changes something returns a `Decision` to carry out."""

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._unresolved: dict[str, ConsumerGroup] = {}

    # --- looking

    def describe_classic(self, group_id: str) -> DescribedGroup:
        """The classic group as DescribeGroups shows it."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise GroupNotFoundError(f"Group {group_id} is not a classic group.")
        return group.describe()

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        """The group of the new protocol as ConsumerGroupDescribe shows it."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupNotFoundError(f"Group {group_id} is not a consumer group.")
        return group.describe()

    # --- the classic protocol

    def join(self, request: JoinRequest, ticket: Ticket, now_ms: int) -> Decision[None]:
        """JoinGroup: the answer comes with `ticket`, now or later."""
        group_id = request.group_id
        if not group_id:
            raise InvalidGroupIdError("The configured groupId is invalid.")
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            outcome = group.join(request, ticket, self.surroundings.topics, now_ms)
            return self._sourced(group, None, outcome, now_ms)
        if isinstance(group, ClassicGroup):
            return self._classic(group, None, group.join(request, ticket, now_ms))
        if request.member_id:
            raise UnknownMemberError("The coordinator is not aware of this member.")
        fresh = self.new_classic(group_id, now_ms)
        outcome = fresh.join(request, ticket, now_ms)
        if fresh.is_vacant:
            # It was refused, and without an id to come back with.
            return Decision(group_id, None, answers=outcome.answers)
        if group is not None:
            # The empty group of the other protocol ends with this join.
            outcome.records[:0] = group.tombstones()
        self.put(fresh)
        decision = self._classic(fresh, None, outcome)

        def on_failed(now_ms: int) -> Outcome:
            if group is None:
                self.remove(group_id)
            else:
                self.put(group)
            return fresh.die(CoordinatorNotAvailableError("The new group could not be written."))

        decision.on_failed = on_failed
        return decision

    def sync(self, request: SyncRequest, ticket: Ticket, now_ms: int) -> Decision[None]:
        """SyncGroup: the answer comes with `ticket`, now or later."""
        group = self._group_of_member(request.group_id)
        if isinstance(group, ConsumerGroup):
            outcome = group.sync(request, ticket, self.surroundings.topics, now_ms)
            return self._sourced(group, None, outcome, now_ms)
        return self._classic(group, None, group.sync(request, ticket, now_ms))

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now_ms: int,
    ) -> None:
        """Heartbeat: all is well unless it raises. Only moves deadlines to later."""
        group = self._group_of_member(group_id)
        if isinstance(group, ClassicGroup):
            group.heartbeat(member_id, group_instance_id, generation_id, now_ms)
        else:
            group.classic_heartbeat(member_id, group_instance_id, generation_id, now_ms)

    def leave(
        self, group_id: str, members: Sequence[LeavingMember], now_ms: int
    ) -> Decision[list[LeaveResult]]:
        """LeaveGroup: what became of each."""
        group = self._group_of_member(group_id)
        if isinstance(group, ConsumerGroup):
            results, outcome = group.leave(members, self.surroundings.topics, now_ms)
            return self._sourced(group, results, outcome, now_ms)
        results, outcome = group.leave(members, now_ms)
        return self._classic(group, results, outcome)

    # --- the new protocol

    def consumer_heartbeat(
        self, request: ConsumerHeartbeatRequest, now_ms: int
    ) -> Decision[ConsumerHeartbeatReply]:
        """ConsumerGroupHeartbeat: join, stay, change one's mind or leave."""
        group_id = request.group_id
        topics = self.surroundings.topics
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            reply, outcome = group.heartbeat(request, topics, now_ms)
            return self._sourced(group, reply, outcome, now_ms)
        validate_heartbeat(request, self.surroundings.consumer_limits(group_id))
        if request.member_epoch != _JOINS:
            if group is None:
                kind = "Consumer group" if request.member_epoch > _JOINS else "Group"
                raise GroupNotFoundError(f"{kind} {group_id} not found.")
            raise GroupNotFoundError(f"Group {group_id} is not a consumer group.")
        if group is None:
            fresh = self.new_consumer(group_id, now_ms)
            reply, outcome = fresh.heartbeat(request, topics, now_ms)
            return self._replacing(fresh, reply, outcome, (), None)
        up = upgrade(
            group,
            topics,
            lambda: self.surroundings.consumer_limits(group_id),
            make_member_id=self.surroundings.make_consumer_member_id,
            now_ms=now_ms,
        )
        reply, outcome = up.group.heartbeat(request, topics, now_ms)
        return self._replacing(up.group, reply, outcome, up.records, group)

    # --- subscriptions by expression

    @property
    def has_searches_due(self) -> bool:
        """Whether `searches_due` may have something to return."""
        return bool(self._unresolved)

    def searches_due(self) -> list[ConsumerGroup]:
        """Groups that have expressions to resolve since this was last asked for."""
        due, self._unresolved = self._unresolved, {}
        return [group for group_id, group in due.items() if self._groups.get(group_id) is group]

    def resolved(self, group: ConsumerGroup, search: Search, now_ms: int) -> Decision[None]:
        """The search came to its end: what it found makes an epoch of its own."""
        if self._groups.get(group.group_id) is not group:
            return Decision(group.group_id, None)
        outcome = group.resolution.outcome(search, self.surroundings.topics, now_ms)
        decision = Decision(group.group_id, None, outcome.records)

        def on_written() -> None:
            self.apply_all(outcome.records, now_ms)
            group.resolution.end(search)
            self._settle(group)

        decision.on_written = on_written
        return decision

    # --- time

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` wants to be called next; perhaps too early, never too late."""
        return self._deadlines.next_ms

    def tick(self, now_ms: int) -> list[Decision[None]]:
        """Let time pass in the groups that wait for it."""
        decisions = []
        for group_id in self._deadlines.due(now_ms):
            group = self._groups.get(group_id)
            if isinstance(group, ClassicGroup):
                decisions.append(self._classic(group, None, group.tick(now_ms)))
            elif group is not None:
                outcome = group.tick(self.surroundings.topics, now_ms)
                decisions.append(self._sourced(group, None, outcome, now_ms))
            if group is not None:
                self.note(group, at_least_ms=now_ms + _RETRY_MS)
        return decisions

    # --- making decisions

    def _group_of_member(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        """The group that a member speaks of; a member of no group is not known."""
        if not group_id:
            raise InvalidGroupIdError("The configured groupId is invalid.")
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberError("The coordinator is not aware of this member.")
        return group

    def _classic(self, group: ClassicGroup, reply: _Reply, outcome: Outcome) -> Decision[_Reply]:
        def on_failed(now_ms: int) -> Outcome:
            undone = group.write_failed(now_ms)
            self.note(group)
            return undone

        self.note(group)
        return Decision(
            group.group_id, reply, outcome.records, outcome.answers, on_failed=on_failed
        )

    def _sourced(
        self, group: ConsumerGroup, reply: _Reply, outcome: Outcome, now_ms: int
    ) -> Decision[_Reply]:
        decision = Decision(group.group_id, reply, outcome.records, outcome.answers)

        def on_written() -> None:
            self.apply_all(outcome.records, now_ms)
            self._settle(group)

        def on_downgraded() -> None:
            assert isinstance(outcome, Downgrade)
            limits = self.surroundings.classic_limits()
            make_id = self.surroundings.make_classic_member_id
            classic, more = downgraded(outcome, limits, make_member_id=make_id, now_ms=now_ms)
            self.put(classic)
            decision.answers += more.answers

        if isinstance(outcome, Downgrade):
            decision.on_written = on_downgraded
        elif outcome.records:
            decision.on_written = on_written
        else:
            self.note(group)
            if group.resolution.in_use:
                self._settle(group)
        return decision

    def _settle(self, group: ConsumerGroup) -> None:
        """After a step: when does the group want to be woken, and has it something to look up?"""
        self.note(group)
        if group.resolution.is_due(self.surroundings.topics):
            self._unresolved[group.group_id] = group

    def _replacing(
        self,
        group: ConsumerGroup,
        reply: _Reply,
        outcome: Outcome,
        records: Sequence[GroupRecord],
        replaced: ClassicGroup | None,
    ) -> Decision[_Reply]:
        """`group` takes its place when `records` and those of `outcome` are written."""
        decision = Decision(
            group.group_id, reply, [*records, *outcome.records], list(outcome.answers)
        )

        def on_written() -> None:
            for record in outcome.records:
                group.apply(record)
            self.put(group)
            self._settle(group)
            if replaced is not None:
                decision.answers += replaced.die(_rebalancing()).answers

        decision.on_written = on_written
        return decision
