"""A classic consumer group: a state machine without clock, disk or network.

Invariant: records in an `GroupOutcome` describe the group as it is after the step; they are to be
written before the answers of the same outcome are given. Every parked ticket is answered once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    GroupError,
    GroupNotFoundError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.classic.join import Join, Undo, take_back
from headrace.coordinators.groups.classic.member import Member, Protocols
from headrace.coordinators.groups.classic.rebalance import Rebalance
from headrace.coordinators.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from headrace.coordinators.groups.limits import ClassicLimits
from headrace.coordinators.groups.messages import (
    CONSUMER_PROTOCOL_TYPE,
    DescribedGroup,
    GroupOutcome,
    GroupSummary,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    SyncRequest,
    Ticket,
)
from headrace.coordinators.groups.records import GroupMetadata


class ClassicGroup:
    """One group. Owned by one thread; time comes in as `now_ms` and never goes back.

    `make_member_id` makes a new id from a client id or a group.instance.id. A ticket is any
    object but None.
    """

    def __init__(
        self,
        group_id: str,
        limits: ClassicLimits,
        *,
        make_member_id: Callable[[str], str],
        now_ms: int = 0,
    ) -> None:
        self.group_id = group_id
        self._rebalance = Rebalance(group_id, limits, now_ms)
        self._members = self._rebalance.members
        self._make_member_id = make_member_id
        self._is_written = False
        self._undo: Undo | None = None

    @classmethod
    def restore(
        cls,
        record: GroupMetadata,
        limits: ClassicLimits,
        *,
        make_member_id: Callable[[str], str],
        now_ms: int,
        protocols: Mapping[str, Protocols] | None = None,
    ) -> Self:
        """The group as it was written down; sessions start anew.

        The record knows only what members said under the chosen protocol; `protocols` adds the
        rest by member id, where it is known.
        """
        group = cls(record.group_id, limits, make_member_id=make_member_id, now_ms=now_ms)
        group._rebalance.restore(record, protocols or {}, now_ms)
        group._is_written = True
        return group

    @property
    def state(self) -> str:
        """The state by Kafka's name."""
        return self._rebalance.state

    @property
    def state_timestamp_ms(self) -> int:
        """Since when the group is in its state; -1 if its record did not say."""
        return self._rebalance.state_timestamp_ms

    @property
    def protocol_type(self) -> str | None:
        """What kind of members there are; None before the first one."""
        return self._members.protocol_type

    @property
    def protocol_name(self) -> str | None:
        """The protocol of this generation."""
        return self._rebalance.protocol_name

    @property
    def generation_id(self) -> int:
        """Goes up by one with every rebalance."""
        return self._rebalance.generation_id

    @property
    def leader(self) -> str | None:
        """The member that makes the assignment."""
        return self._members.leader

    @property
    def members(self) -> Mapping[str, Member]:
        """The members by id."""
        return self._members.by_id

    @property
    def member_count(self) -> int:
        """How many members there are."""
        return len(self._members)

    @property
    def is_empty(self) -> bool:
        """There are no members."""
        return self._rebalance.state == EMPTY

    @property
    def is_vacant(self) -> bool:
        """Nobody is in, nobody is expected: nothing would be lost with it but its generation."""
        return self.is_empty and not self._members.pending

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` wants to be called next. May be early, is never late."""
        return self._rebalance.next_deadline_ms

    def join(self, request: JoinRequest, ticket: Ticket, now_ms: int) -> GroupOutcome:
        """Take part in the next generation. Refusals are answers, too: this never raises."""
        join = Join(self._rebalance, request, ticket, now_ms)
        join.run(self._make_member_id)
        self._undo = join.undo
        if not self._is_written and (self._members or self._members.pending):
            # As Kafka does: a group is known on disk from its first member on.
            join.outcome.records.append(GroupMetadata(self.group_id, "", 0, None, None, now_ms, ()))
            self._is_written = True
        return join.outcome

    def sync(self, request: SyncRequest, ticket: Ticket, now_ms: int) -> GroupOutcome:
        """Ask for the assignment; the leader brings it. Refusals are answers, too."""
        self._undo = None
        return self._rebalance.sync(request, ticket, now_ms)

    def heartbeat(
        self, member_id: str, group_instance_id: str | None, generation_id: int, now_ms: int
    ) -> None:
        """Keep the member's session alive; raise what the member must know."""
        rebalance = self._rebalance
        member = self._members.by_id.get(member_id)
        if (
            member is None
            or generation_id != rebalance.generation_id
            or (group_instance_id is not None and group_instance_id != member.group_instance_id)
            or rebalance.state == DEAD
        ):
            member = self._rebalance.check(member_id, group_instance_id, generation_id)
        if rebalance.state == PREPARING_REBALANCE:
            rebalance.expect_heartbeat(member, member.session_timeout_ms, now_ms)
            raise RebalanceInProgressError("join again")
        # In any other state this is later than the deadline was: nothing to watch.
        member.deadline_ms = now_ms + member.session_timeout_ms

    def leave(
        self, members: Sequence[LeavingMember], now_ms: int
    ) -> tuple[list[LeaveResult], GroupOutcome]:
        """Let go of members, of expected ones, and of instances that an administrator names.

        One rebalance for all of them.
        """
        self._undo = None
        rebalance, outcome = self._rebalance, GroupOutcome()
        if rebalance.state == DEAD:
            raise CoordinatorNotAvailableError("the group is no more")
        results = [
            LeaveResult(one.member_id, one.group_instance_id, self._let_go(one, outcome))
            for one in members
        ]
        if rebalance.state != EMPTY and any(result.error is None for result in results):
            rebalance.proceed(now_ms, outcome)
        return results, outcome

    def _let_go(self, leaving: LeavingMember, outcome: GroupOutcome) -> GroupError | None:
        members = self._members
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if not member_id and instance_id is not None:
            member_id = members.member_id_of(instance_id) or ""
        if member_id in members.pending:
            members.remove(member_id)  # sent back for an id (KIP-394), and decided not to come
            return None
        try:
            member = members.check(member_id, instance_id)
        except GroupError as error:
            return error
        self._rebalance.remove(member, outcome)
        return None

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now_ms: int,
        *,
        is_transactional: bool = False,
    ) -> None:
        """Raise if these may not commit offsets now. A member that may has been heard of.

        Without a generation it is an administrator or a consumer that chose its partitions
        itself: welcome where there are no members. Transactions are not bound to the state.
        """
        rebalance = self._rebalance
        if rebalance.state == DEAD:
            raise CoordinatorNotAvailableError("the group is no more")
        if generation_id < 0 and rebalance.state == EMPTY:
            return
        if generation_id < 0 and not member_id and group_instance_id is None:
            if not is_transactional:
                raise UnknownMemberError("the group has members; only they may commit")
            return
        member = self._rebalance.check(member_id, group_instance_id, generation_id)
        if is_transactional:
            return
        if rebalance.state == COMPLETING_REBALANCE:
            raise RebalanceInProgressError("the assignment of this generation is not known yet")
        rebalance.expect_heartbeat(member, member.session_timeout_ms, now_ms)

    def check_delete(self) -> None:
        """Raise if the group may not be deleted."""
        if self._rebalance.state == DEAD:
            raise GroupNotFoundError(f"Group {self.group_id} is in dead state.")
        if self._rebalance.state != EMPTY:
            raise NonEmptyGroupError(f"group {self.group_id} has members")

    def check_offset_delete(self) -> None:
        """Raise if no offset may be deleted; for topics see `is_subscribed_to`."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or self._rebalance.state == DEAD:
            self.check_delete()

    def is_subscribed_to(self, topic: str) -> bool:
        """A member reads the topic, or might: subscriptions that cannot be read name all."""
        topics = self._rebalance.subscribed_topics
        if topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in topics

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members of this generation read; None if nobody can say."""
        return self._rebalance.subscribed_topics

    def describe(self) -> DescribedGroup:
        """The group as DescribeGroups shows it. Metadata is shown in a Stable group only."""
        name = self.protocol_name if self.state == STABLE else None
        members = tuple(member.describe(name) for member in self._members)
        kind = self.protocol_type or ""
        return DescribedGroup(self.group_id, self.state, kind, name or "", members)

    def listed(self) -> GroupSummary:
        """The group as ListGroups shows it."""
        return GroupSummary(self.group_id, self.protocol_type or "", self.state, "classic")

    def record(self) -> GroupMetadata:
        """The group as it would be written down now."""
        return self._rebalance.record()

    def tick(self, now_ms: int) -> GroupOutcome:
        """Do what is due: end sessions and waits."""
        self._undo = None
        return self._rebalance.expire(now_ms)

    def rebalance(self, now_ms: int) -> GroupOutcome:
        """Have everyone join again, for a reason from outside the group."""
        outcome = GroupOutcome()
        if self.state in (STABLE, COMPLETING_REBALANCE):
            self._rebalance.prepare(now_ms, outcome)
        return outcome

    def write_failed(self, now_ms: int) -> GroupOutcome:
        """The records of the last outcome were not written, and its answers not given.

        A static member's new id is taken back; an assignment is void, and everyone joins again;
        an empty group stays empty: should it come back from disk with members, they expire.
        """
        outcome, rebalance = GroupOutcome(), self._rebalance
        undo, self._undo = self._undo, None
        if undo is not None:
            take_back(rebalance, undo, now_ms)
        elif rebalance.state == STABLE:
            error = CoordinatorNotAvailableError("the assignment could not be written")
            rebalance.void_assignment(error, now_ms, outcome)
            rebalance.prepare(now_ms, outcome)
        return outcome

    def die(self, error: GroupError) -> GroupOutcome:
        """The group ends here: whoever waits is told `error`, whoever comes may try elsewhere."""
        return self._rebalance.end(error)
