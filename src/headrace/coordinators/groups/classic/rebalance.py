"""How a classic group comes from one generation to the next.

Prepare: every member is to join; it ends when all have, or when the time is over. Complete: the
next generation begins, everyone is told who leads, and the leader's assignment is awaited. Sync:
everyone asks for its part, the leader brings it for all.

Invariant: a member is told of a generation once, with the same protocol and leader as all others,
and a parked request is answered once: taking its ticket is the only way to answer it. State,
generation and deadlines change in this file only.
"""

from collections.abc import Mapping

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    GroupError,
    IllegalGenerationError,
    InconsistentProtocolError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.classic.member import Member, Protocols
from headrace.coordinators.groups.classic.membership import Membership
from headrace.coordinators.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from headrace.coordinators.groups.consumer_protocol import decode_topics
from headrace.coordinators.groups.limits import ClassicLimits
from headrace.coordinators.groups.messages import (
    CONSUMER_PROTOCOL_TYPE,
    GroupOutcome,
    JoinReply,
    SyncReply,
    SyncRequest,
    Ticket,
)
from headrace.coordinators.groups.records import GroupMetadata
from headrace.protocol.errors import WireError

# Whoever waits in its first join sends no heartbeats, and a closed connection is not noticed. As
# Kafka does, give up on it after this time; a client that is still there joins again.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class Rebalance:
    """The state of a group and the steps between states. Owned by one `ClassicGroup`."""

    def __init__(self, group_id: str, limits: ClassicLimits, now_ms: int) -> None:
        self.group_id = group_id
        self.limits = limits
        self.members = Membership()
        self.state = EMPTY
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        self.protocol_name: str | None = None
        # None: nobody can say, because there is no protocol or it is not the consumers' own.
        self.subscribed_topics: frozenset[str] | None = None
        self.next_deadline_ms: int | None = None
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        self._missing_syncs: set[str] = set()  # members of this generation that did not sync yet
        self._has_grown = False  # a member came while the first rebalance was held back
        # The first rebalance of an empty group is held back, so that others can come: for how
        # much longer, at most, after the delay that is under way.
        self._delay_left_ms: int | None = None

    def restore(
        self, record: GroupMetadata, protocols: Mapping[str, Protocols], now_ms: int
    ) -> None:
        """Be as it was written down; `protocols` is what members said besides, by member id."""
        members = self.members
        self.generation_id = record.generation_id
        self.protocol_name = record.protocol_name
        members.protocol_type = record.protocol_type or None
        members.leader = record.leader
        for written in record.members:
            said = ((record.protocol_name or "", written.subscription),)
            member = Member.restore(written, protocols.get(written.member_id, said))
            members.add(member, record.protocol_type)
            self.expect_heartbeat(member, member.session_timeout_ms, now_ms)
        if members.leader not in members.by_id:
            members.leader = next(iter(members.by_id), None)
        self._learn_topics()
        self._move_to(STABLE if record.members else EMPTY, record.state_timestamp_ms)
        if len(record.members) > self.limits.max_size:
            # The limit was lowered: everyone may commit and come again, up to the new size.
            self.prepare(now_ms, GroupOutcome())

    # --- members

    def expect_heartbeat(self, member: Member, timeout_ms: int, now_ms: int) -> None:
        """The member must be heard of within this time."""
        member.deadline_ms = now_ms + timeout_ms
        self._watch(member.deadline_ms)

    def check(self, member_id: str, group_instance_id: str | None, generation_id: int) -> Member:
        """Return the member of this generation, or raise what it must know."""
        if self.state == DEAD:
            raise CoordinatorNotAvailableError("the group is no more")
        member = self.members.check(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise IllegalGenerationError(f"generation {generation_id} is not {self.generation_id}")
        return member

    def expect_join(self, member_id: str, deadline_ms: int) -> None:
        """One who was sent back for this id (KIP-394) has until then to come again."""
        self.members.pending[member_id] = deadline_ms
        self._watch(deadline_ms)

    def add(
        self, member: Member, protocol_type: str, ticket: Ticket, now_ms: int, outcome: GroupOutcome
    ) -> None:
        """Take a newcomer in; its join waits for the end of the rebalance."""
        member.is_new = True
        self._has_grown = True
        self.members.add(member, protocol_type)
        self.park_join(member, ticket, outcome)
        self.expect_heartbeat(member, NEW_MEMBER_JOIN_TIMEOUT_MS, now_ms)
        self.proceed(now_ms, outcome)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member goes by another id."""
        if member.member_id in self._missing_syncs:
            self._missing_syncs.remove(member.member_id)
            self._missing_syncs.add(member_id)
        self.members.rename(member, member_id)

    def remove(self, member: Member, outcome: GroupOutcome) -> None:
        """Let go of a member. What it has parked is answered so that it would join anew."""
        self.turn_away(member, outcome, UnknownMemberError("the member was removed"), "")
        self.members.remove(member.member_id)
        self._missing_syncs.discard(member.member_id)

    def turn_away(
        self, member: Member, outcome: GroupOutcome, error: GroupError, name: str
    ) -> None:
        """Answer whatever the member has parked with an error; `name` is the id in the answer."""
        self._answer_join(member, JoinReply(error, name), outcome)
        self._answer_sync(member, SyncReply(error), outcome)

    # --- from one generation to the next

    def prepare(self, now_ms: int, outcome: GroupOutcome) -> None:
        """Ask everyone to join again."""
        if self.state == COMPLETING_REBALANCE:
            self.void_assignment(RebalanceInProgressError("a member came or went"), now_ms, outcome)
        self._missing_syncs.clear()
        self._sync_deadline_ms = None
        was_empty = self.state == EMPTY
        self._move_to(PREPARING_REBALANCE, now_ms)
        if was_empty:
            self._hold_back(now_ms, outcome)
        elif self.members.have_all_joined or not self.members:
            self._complete(now_ms, outcome)
        else:
            self._wait_for_joins(now_ms)

    def proceed(self, now_ms: int, outcome: GroupOutcome) -> None:
        """Someone came or went: begin a rebalance, or end the one that waited only for this."""
        if self.state != PREPARING_REBALANCE:
            self.prepare(now_ms, outcome)
        elif self.members.have_all_joined and self._delay_left_ms is None:
            self._complete(now_ms, outcome)

    def _complete(self, now_ms: int, outcome: GroupOutcome) -> None:
        """Begin the next generation with those who joined.

        Static members that did not join stay: their session decides (KIP-345).
        """
        self._join_deadline_ms = self._delay_left_ms = None
        members = self.members
        for member in [m for m in members if m.join_ticket is None and not m.is_static]:
            members.remove(member.member_id)
        if members and not members.elect_joined_leader():
            # Only static members, all of them away: wait for one, or for their sessions to end.
            self._wait_for_joins(now_ms)
            return
        self.generation_id += 1
        self._missing_syncs.clear()
        self.protocol_name = members.choose_protocol() if members else None
        self._learn_topics()
        if not members:
            self._move_to(EMPTY, now_ms)
            outcome.records.append(self.record())
            return
        self._move_to(COMPLETING_REBALANCE, now_ms)
        for member in members:
            self._answer_join(member, self.current_generation(member), outcome)
            self.expect_heartbeat(member, member.session_timeout_ms, now_ms)
            member.is_new = False
            self._missing_syncs.add(member.member_id)
        self._sync_deadline_ms = now_ms + self._timeout_ms
        self._watch(self._sync_deadline_ms)

    def park_join(self, member: Member, ticket: Ticket, outcome: GroupOutcome) -> None:
        """Keep a join for the end of the rebalance. A client that asks twice gets the last one."""
        superseded = self.members.park_join(member, ticket)
        if superseded is not None:
            error = RebalanceInProgressError("a later join of this member took its place")
            outcome.answers.append((superseded, JoinReply(error, member.member_id)))

    # --- the assignment of this generation

    def sync(self, request: SyncRequest, ticket: Ticket, now_ms: int) -> GroupOutcome:
        """Ask for the assignment: who asks before the leader waits, who asks later is answered."""
        outcome = GroupOutcome()
        try:
            member = self._check_sync(request)
        except GroupError as error:
            outcome.answers.append((ticket, SyncReply(error)))
            return outcome
        self._missing_syncs.discard(member.member_id)
        if not self._missing_syncs:
            self._sync_deadline_ms = None
        if self.state == STABLE:
            outcome.answers.append((ticket, self._assignment_of(member)))
            return outcome
        superseded = RebalanceInProgressError("a later sync of this member took its place")
        self._answer_sync(member, SyncReply(superseded), outcome)
        member.sync_ticket = ticket
        if member.member_id == self.members.leader:
            self._assign(dict(request.assignments), now_ms, outcome)
        return outcome

    def _check_sync(self, request: SyncRequest) -> Member:
        member = self.check(request.member_id, request.group_instance_id, request.generation_id)
        # None: the version of the request does not say.
        if request.protocol_type not in (None, self.members.protocol_type) or (
            request.protocol_name not in (None, self.protocol_name)
        ):
            raise InconsistentProtocolError("not the protocol of this generation")
        if self.state == PREPARING_REBALANCE:
            raise RebalanceInProgressError("join again")
        return member

    def _assign(self, assignments: dict[str, bytes], now_ms: int, outcome: GroupOutcome) -> None:
        """The leader has spoken: write it down, then tell everyone who asked."""
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
        outcome.records.append(self.record())
        for member in self.members:
            reply = self._assignment_of(member)
            if self._answer_sync(member, reply, outcome):
                self.expect_heartbeat(member, member.session_timeout_ms, now_ms)
        self._move_to(STABLE, now_ms)

    def void_assignment(self, error: GroupError, now_ms: int, outcome: GroupOutcome) -> None:
        """Nobody has anything of this generation."""
        for member in self.members:
            member.assignment = b""
            if self._answer_sync(member, SyncReply(error), outcome):
                self.expect_heartbeat(member, member.session_timeout_ms, now_ms)

    # --- time

    def expire(self, now_ms: int) -> GroupOutcome:
        """End every session and every wait that is over, then find the next deadline.

        Kept simple rather than quick: it looks at every member, but only when a deadline may have
        come. Heartbeats move a member's deadline and touch nothing else, so many calls find
        nothing to do.
        """
        outcome = GroupOutcome()
        if self.state == DEAD:
            return outcome
        self._expire_expected(now_ms, outcome)
        self._expire_sessions(now_ms, outcome)
        self._expire_syncs(now_ms, outcome)
        if _is_over(self._join_deadline_ms, now_ms):
            self._end_wait_for_joins(now_ms, outcome)
        self.next_deadline_ms = self._earliest_deadline_ms()
        return outcome

    def _expire_expected(self, now_ms: int, outcome: GroupOutcome) -> None:
        """Members that were sent back for their id and did not come."""
        pending = self.members.pending
        for member_id in [m for m, deadline_ms in pending.items() if deadline_ms <= now_ms]:
            del pending[member_id]
            self._complete_if_all_joined(now_ms, outcome)

    def _expire_sessions(self, now_ms: int, outcome: GroupOutcome) -> None:
        late = [m for m in self.members if m.deadline_ms <= now_ms and m.can_expire]
        for member in late:
            self.remove(member, outcome)
        if not late:
            return
        if self.state in (STABLE, COMPLETING_REBALANCE):
            self.prepare(now_ms, outcome)
        else:
            self._complete_if_all_joined(now_ms, outcome)

    def _expire_syncs(self, now_ms: int, outcome: GroupOutcome) -> None:
        """Members that joined this generation but did not ask for their part of it."""
        if not _is_over(self._sync_deadline_ms, now_ms):
            return
        self._sync_deadline_ms = None
        late = [m for m in self.members if m.member_id in self._missing_syncs]
        for member in late:
            self.remove(member, outcome)
        if late:
            self.prepare(now_ms, outcome)

    def _complete_if_all_joined(self, now_ms: int, outcome: GroupOutcome) -> None:
        if self.state == PREPARING_REBALANCE and self.members.have_all_joined:
            self._complete(now_ms, outcome)

    def _end_wait_for_joins(self, now_ms: int, outcome: GroupOutcome) -> None:
        """The time to join is over, unless it was the first delay and others came meanwhile."""
        if self._delay_left_ms and self._has_grown:
            self._has_grown = False
            delay_ms = min(self.limits.initial_rebalance_delay_ms, self._delay_left_ms)
            self._delay_left_ms -= delay_ms
            self._set_join_deadline(now_ms + delay_ms)
        else:
            self._complete(now_ms, outcome)

    def _earliest_deadline_ms(self) -> int | None:
        members = self.members
        deadlines = [member.deadline_ms for member in members if member.can_expire]
        deadlines += members.pending.values()
        deadlines += [
            deadline_ms
            for deadline_ms in (self._join_deadline_ms, self._sync_deadline_ms)
            if deadline_ms is not None
        ]
        return min(deadlines, default=None)

    def _watch(self, deadline_ms: int) -> None:
        """See to it that `next_deadline_ms` is not later than this."""
        if self.next_deadline_ms is None or deadline_ms < self.next_deadline_ms:
            self.next_deadline_ms = deadline_ms

    def end(self, error: GroupError) -> GroupOutcome:
        """The group is no more: whoever waits is told `error`."""
        outcome = GroupOutcome()
        for member in self.members:
            self.turn_away(member, outcome, error, member.member_id)
        self.state = DEAD
        self.next_deadline_ms = None
        return outcome

    # --- what others are told

    def current_generation(self, member: Member) -> JoinReply:
        """What a member is told of the generation; the list of members only if it leads."""
        is_leader = self.members.leader == member.member_id
        return JoinReply(
            None,
            member.member_id,
            self.generation_id,
            self.members.protocol_type,
            self.protocol_name,
            self.members.leader or "",
            self.members.as_told_to_leader(self.protocol_name) if is_leader else (),
        )

    def _assignment_of(self, member: Member) -> SyncReply:
        """What a member is told of its assignment."""
        return SyncReply(None, member.assignment, self.members.protocol_type, self.protocol_name)

    def record(self) -> GroupMetadata:
        """The group as it is written down."""
        return GroupMetadata(
            self.group_id,
            self.members.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.members.leader,
            self.state_timestamp_ms,
            tuple(member.record(self.protocol_name) for member in self.members),
        )

    def _learn_topics(self) -> None:
        """Look into the members' subscriptions, if they are ones of consumers."""
        self.subscribed_topics = None
        if self.members.protocol_type == CONSUMER_PROTOCOL_TYPE:
            said = {member.metadata(self.protocol_name) for member in self.members}
            try:
                self.subscribed_topics = frozenset().union(*map(decode_topics, said))
            except WireError:
                return

    # --- steps

    def _move_to(self, state: str, now_ms: int) -> None:
        self.state = state
        self.state_timestamp_ms = now_ms

    def _hold_back(self, now_ms: int, outcome: GroupOutcome) -> None:
        delay_ms = self.limits.initial_rebalance_delay_ms
        if delay_ms == 0:
            self._complete(now_ms, outcome)
            return
        self._has_grown = False
        self._delay_left_ms = max(self.members.rebalance_timeout_ms - delay_ms, 0)
        self._set_join_deadline(now_ms + delay_ms)

    @property
    def _timeout_ms(self) -> int:
        # A time-out of 0 would come again at the same instant, for ever.
        return max(self.members.rebalance_timeout_ms, 1)

    def _wait_for_joins(self, now_ms: int) -> None:
        self._set_join_deadline(now_ms + self._timeout_ms)

    def _set_join_deadline(self, deadline_ms: int) -> None:
        self._join_deadline_ms = deadline_ms
        self._watch(deadline_ms)

    def _answer_join(self, member: Member, reply: JoinReply, outcome: GroupOutcome) -> None:
        if (ticket := self.members.take_join(member)) is not None:
            outcome.answers.append((ticket, reply))

    def _answer_sync(self, member: Member, reply: SyncReply, outcome: GroupOutcome) -> bool:
        ticket, member.sync_ticket = member.sync_ticket, None
        if ticket is None:
            return False
        outcome.answers.append((ticket, reply))
        return True


def _is_over(deadline_ms: int | None, now_ms: int) -> bool:
    return deadline_ms is not None and deadline_ms <= now_ms
