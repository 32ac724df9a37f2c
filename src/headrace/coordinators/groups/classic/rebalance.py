"""How a classic group comes from one generation to the next.

Prepare: every member is to join; it ends when all have, or when the time is over. Complete: the
next generation begins, everyone is told who leads, and the leader's assignment is awaited.

Invariant: a member is told of a generation once, with the same protocol and leader as all others,
and a parked request is answered once: taking its ticket is the only way to answer it.
"""

from headrace.coordinators.groups.classic.limits import ClassicLimits
from headrace.coordinators.groups.classic.member import Member
from headrace.coordinators.groups.classic.membership import Membership
from headrace.coordinators.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from headrace.coordinators.groups.consumer_protocol import decode_topics
from headrace.coordinators.groups.messages import (
    CONSUMER_PROTOCOL_TYPE,
    JoinReply,
    Outcome,
    SyncReply,
    Ticket,
)
from headrace.coordinators.groups.records import GroupMetadata
from headrace.errors import (
    CoordinatorNotAvailableError,
    GroupError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberError,
    WireError,
)


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
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None
        self.missing_syncs: set[str] = set()  # members of this generation that did not sync yet
        self.has_grown = False  # a member came while the first rebalance was held back
        # The first rebalance of an empty group is held back, so that others can come: for how
        # much longer, at most, after the delay that is under way.
        self._delay_left_ms: int | None = None
        self.next_deadline_ms: int | None = None

    @property
    def is_held_back(self) -> bool:
        """The group was empty: the rebalance ends with the delay, not with the last join."""
        return self._delay_left_ms is not None

    def watch(self, deadline_ms: int) -> None:
        """See to it that `next_deadline_ms` is not later than this."""
        if self.next_deadline_ms is None or deadline_ms < self.next_deadline_ms:
            self.next_deadline_ms = deadline_ms

    def expect_heartbeat(self, member: Member, timeout_ms: int, now_ms: int) -> None:
        """The member must be heard of within this time."""
        member.deadline_ms = now_ms + timeout_ms
        self.watch(member.deadline_ms)

    def check(self, member_id: str, group_instance_id: str | None, generation_id: int) -> Member:
        """Return the member of this generation, or raise what it must know."""
        if self.state == DEAD:
            raise CoordinatorNotAvailableError("the group is no more")
        member = self.members.check(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise IllegalGenerationError(f"generation {generation_id} is not {self.generation_id}")
        return member

    def move_to(self, state: str, now_ms: int) -> None:
        self.state = state
        self.state_timestamp_ms = now_ms

    def prepare(self, now_ms: int, outcome: Outcome) -> None:
        """Ask everyone to join again."""
        if self.state == COMPLETING_REBALANCE:
            self.void_assignment(RebalanceInProgressError("a member came or went"), now_ms, outcome)
        self.missing_syncs.clear()
        self.sync_deadline_ms = None
        was_empty = self.state == EMPTY
        self.move_to(PREPARING_REBALANCE, now_ms)
        if was_empty:
            self._hold_back(now_ms, outcome)
        elif self.members.have_all_joined or not self.members:
            self.complete(now_ms, outcome)
        else:
            self._wait_for_joins(now_ms)

    def proceed(self, now_ms: int, outcome: Outcome) -> None:
        """Someone came or went: begin a rebalance, or end the one that waited only for this."""
        if self.state != PREPARING_REBALANCE:
            self.prepare(now_ms, outcome)
        elif self.members.have_all_joined and not self.is_held_back:
            self.complete(now_ms, outcome)

    def end_wait_for_joins(self, now_ms: int, outcome: Outcome) -> None:
        """The time to join is over, unless it was the first delay and others came meanwhile."""
        if self._delay_left_ms and self.has_grown:
            self.has_grown = False
            delay_ms = min(self.limits.initial_rebalance_delay_ms, self._delay_left_ms)
            self._delay_left_ms -= delay_ms
            self._set_join_deadline(now_ms + delay_ms)
        else:
            self.complete(now_ms, outcome)

    def complete(self, now_ms: int, outcome: Outcome) -> None:
        """Begin the next generation with those who joined.

        Static members that did not join stay: their session decides (KIP-345).
        """
        self.join_deadline_ms = self._delay_left_ms = None
        members = self.members
        for member in [m for m in members if m.join_ticket is None and not m.is_static]:
            members.remove(member.member_id)
        if members and not members.elect_joined_leader():
            # Only static members, all of them away: wait for one, or for their sessions to end.
            self._wait_for_joins(now_ms)
            return
        self.generation_id += 1
        self.missing_syncs.clear()
        self.protocol_name = members.choose_protocol() if members else None
        self.learn_topics()
        if not members:
            self.move_to(EMPTY, now_ms)
            outcome.records.append(self.record())
            return
        self.move_to(COMPLETING_REBALANCE, now_ms)
        for member in members:
            self._answer_join(member, self.current_generation(member), outcome)
            self.expect_heartbeat(member, member.session_timeout_ms, now_ms)
            member.is_new = False
            self.missing_syncs.add(member.member_id)
        self.sync_deadline_ms = now_ms + self._timeout_ms
        self.watch(self.sync_deadline_ms)

    def assign(self, assignments: dict[str, bytes], now_ms: int, outcome: Outcome) -> None:
        """The leader has spoken: write it down, then tell everyone who asked."""
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
        outcome.records.append(self.record())
        for member in self.members:
            reply = self.assignment_of(member)
            if self._answer_sync(member, reply, outcome):
                self.expect_heartbeat(member, member.session_timeout_ms, now_ms)
        self.move_to(STABLE, now_ms)

    def void_assignment(self, error: GroupError, now_ms: int, outcome: Outcome) -> None:
        """Nobody has anything of this generation."""
        for member in self.members:
            member.assignment = b""
            if self._answer_sync(member, SyncReply(error), outcome):
                self.expect_heartbeat(member, member.session_timeout_ms, now_ms)

    def park_join(self, member: Member, ticket: Ticket, outcome: Outcome) -> None:
        """Keep a join for the end of the rebalance. A client that asks twice gets the last one."""
        superseded = self.members.park_join(member, ticket)
        if superseded is not None:
            error = RebalanceInProgressError("a later join of this member took its place")
            outcome.answers.append((superseded, JoinReply(error, member.member_id)))

    def park_sync(self, member: Member, ticket: Ticket, outcome: Outcome) -> None:
        """Keep a sync until the leader's comes."""
        error = RebalanceInProgressError("a later sync of this member took its place")
        self._answer_sync(member, SyncReply(error), outcome)
        member.sync_ticket = ticket

    def note_sync(self, member: Member) -> None:
        """The member did its part of this generation."""
        self.missing_syncs.discard(member.member_id)
        if not self.missing_syncs:
            self.sync_deadline_ms = None

    def turn_away(self, member: Member, outcome: Outcome, error: GroupError, name: str) -> None:
        """Answer whatever the member has parked with an error; `name` is the id in the answer."""
        self._answer_join(member, JoinReply(error, name), outcome)
        self._answer_sync(member, SyncReply(error), outcome)

    def remove(self, member: Member, outcome: Outcome) -> None:
        """Let go of a member. What it has parked is answered so that it would join anew."""
        self.turn_away(member, outcome, UnknownMemberError("the member was removed"), "")
        self.members.remove(member.member_id)
        self.missing_syncs.discard(member.member_id)

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

    def assignment_of(self, member: Member) -> SyncReply:
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

    def learn_topics(self) -> None:
        """Look into the members' subscriptions, if they are ones of consumers."""
        self.subscribed_topics = None
        if self.members.protocol_type == CONSUMER_PROTOCOL_TYPE:
            said = {member.metadata(self.protocol_name) for member in self.members}
            try:
                self.subscribed_topics = frozenset().union(*map(decode_topics, said))
            except WireError:
                return

    def _hold_back(self, now_ms: int, outcome: Outcome) -> None:
        delay_ms = self.limits.initial_rebalance_delay_ms
        if delay_ms == 0:
            self.complete(now_ms, outcome)
            return
        self.has_grown = False
        self._delay_left_ms = max(self.members.rebalance_timeout_ms - delay_ms, 0)
        self._set_join_deadline(now_ms + delay_ms)

    @property
    def _timeout_ms(self) -> int:
        # A time-out of 0 would come again at the same instant, for ever.
        return max(self.members.rebalance_timeout_ms, 1)

    def _wait_for_joins(self, now_ms: int) -> None:
        self._set_join_deadline(now_ms + self._timeout_ms)

    def _set_join_deadline(self, deadline_ms: int) -> None:
        self.join_deadline_ms = deadline_ms
        self.watch(deadline_ms)

    def _answer_join(self, member: Member, reply: JoinReply, outcome: Outcome) -> None:
        if (ticket := self.members.take_join(member)) is not None:
            outcome.answers.append((ticket, reply))

    def _answer_sync(self, member: Member, reply: SyncReply, outcome: Outcome) -> bool:
        ticket, member.sync_ticket = member.sync_ticket, None
        if ticket is None:
            return False
        outcome.answers.append((ticket, reply))
        return True
