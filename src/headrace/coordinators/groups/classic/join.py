"""What becomes of a request to join.

Newcomers with a name of their own (static members, KIP-345) and old clients come in at once;
others are sent back for an id first (KIP-394), so that a client that tries again is not counted
twice. Known members start a rebalance only if they have something new to say, or lead.

A static member that comes back without its member id takes the place of the one with the same
group.instance.id, under a new id; whoever still goes by the old id is fenced. In a Stable group
nothing else changes unless the choice of the protocol would: a restart of a consumer then costs
no rebalance.
"""

from collections.abc import Callable
from typing import NamedTuple

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    GroupError,
    GroupFullError,
    InconsistentProtocolError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
)
from headrace.coordinators.groups.classic.member import Member, Protocols
from headrace.coordinators.groups.classic.rebalance import Rebalance
from headrace.coordinators.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from headrace.coordinators.groups.messages import GroupOutcome, JoinReply, JoinRequest, Ticket


class Undo(NamedTuple):
    """What a member was before it came back, should its new id not be written down."""

    member: Member
    new_id: str
    old_id: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int


class Join:
    """One request to join, on its way through the group."""

    def __init__(
        self, rebalance: Rebalance, request: JoinRequest, ticket: Ticket, now_ms: int
    ) -> None:
        self.outcome = GroupOutcome()
        self.undo: Undo | None = None  # if the record cannot be written
        self._rebalance = rebalance
        self._members = rebalance.members
        self._request = request
        self._ticket = ticket
        self._now_ms = now_ms

    def run(self, make_member_id: Callable[[str], str]) -> None:
        """Decide on the request. The answer is in `outcome`, or the request is parked."""
        request = self._request
        if error := self._refusal():
            self._answer(JoinReply(error, request.member_id))
        elif not self._has_room():
            self._refuse_for_size()
        elif not self._is_consistent():
            error = InconsistentProtocolError("no protocol in common with the group")
            self._answer(JoinReply(error, request.member_id))
        elif request.member_id:
            self._join_known()
        else:
            self._join_unknown(make_member_id(request.group_instance_id or request.client_id))

    def _refusal(self) -> GroupError | None:
        if self._rebalance.state == DEAD:
            return CoordinatorNotAvailableError("the group is no more")
        shortest, longest, *_ = self._rebalance.limits
        if not shortest <= self._request.session_timeout_ms <= longest:
            return InvalidSessionTimeoutError(
                f"session time-out {self._request.session_timeout_ms} ms is outside "
                f"[{shortest}, {longest}]"
            )
        return None

    def _has_room(self) -> bool:
        """A group over its size, because the limit was lowered, shrinks at the next rebalance."""
        state, max_size = self._rebalance.state, self._rebalance.limits.max_size
        member = self._members.by_id.get(self._request.member_id)
        if state == EMPTY:
            return True
        if state == PREPARING_REBALANCE:
            is_waiting = member is not None and member.join_ticket is not None
            return is_waiting or self._members.waiting_count < max_size
        return member is not None or len(self._members) < max_size

    def _refuse_for_size(self) -> None:
        rebalance, member_id = self._rebalance, self._request.member_id
        if member := self._members.by_id.get(member_id):
            rebalance.remove(member, self.outcome)
        self._members.remove(member_id)  # one who was expected, too
        error = GroupFullError(f"the group has its {rebalance.limits.max_size} members")
        self._answer(JoinReply(error))
        if rebalance.state == PREPARING_REBALANCE:
            rebalance.proceed(self._now_ms, self.outcome)

    def _is_consistent(self) -> bool:
        if self._rebalance.state == EMPTY:
            return bool(self._request.protocol_type and self._request.protocols)
        return self._members.supports(self._request)

    def _join_unknown(self, member_id: str) -> None:
        request = self._request
        instance_id = request.group_instance_id
        if instance_id is not None:
            current = self._members.member_id_of(instance_id)
            if current is None:
                self._add(member_id)
            else:
                self.undo = self._come_back(self._members.by_id[current], member_id)
        elif request.must_know_its_id:
            self._rebalance.expect_join(member_id, self._now_ms + request.session_timeout_ms)
            error = MemberIdRequiredError("join again with this member id")
            self._answer(JoinReply(error, member_id))
        else:
            self._add(member_id)

    def _join_known(self) -> None:
        request, rebalance = self._request, self._rebalance
        member_id = request.member_id
        if member_id in self._members.pending:
            if request.group_instance_id is not None:
                error = GroupError("a member that was sent back for its id cannot become static")
                self._answer(JoinReply(error, member_id))
            else:
                self._add(member_id)
            return
        try:
            member = self._members.check(member_id, request.group_instance_id)
        except GroupError as error:
            self._answer(JoinReply(error, member_id))
            return
        # Who has nothing new to say did not hear the answer to an earlier join. A leader in a
        # Stable group knows of a reason that does not show, such as a topic that has grown.
        is_repeated = request.protocols == member.protocols and (
            rebalance.state == COMPLETING_REBALANCE
            or (rebalance.state == STABLE and self._members.leader != member_id)
        )
        if is_repeated:
            self._answer(rebalance.current_generation(member))
            return
        self._members.update(
            member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms
        )
        rebalance.park_join(member, self._ticket, self.outcome)
        rebalance.proceed(self._now_ms, self.outcome)

    def _add(self, member_id: str) -> None:
        request = self._request
        member = Member(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
        )
        self._rebalance.add(member, request.protocol_type, self._ticket, self._now_ms, self.outcome)

    def _come_back(self, member: Member, member_id: str) -> Undo | None:
        """Give `member` the new id; return how to undo it if that alone is to be written."""
        request, rebalance, members = self._request, self._rebalance, self._members
        now_ms, outcome, old_leader = self._now_ms, self.outcome, members.leader
        undo = Undo(
            member,
            member_id,
            member.member_id,
            member.protocols,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
        )
        error = FencedInstanceError(
            f"instance {member.group_instance_id} is now member {member_id}"
        )
        rebalance.turn_away(member, outcome, error, member.member_id)
        rebalance.rename(member, member_id)
        member.is_new = False
        members.update(
            member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms
        )
        rebalance.expect_heartbeat(member, member.session_timeout_ms, now_ms)
        if rebalance.state == STABLE and members.choose_protocol() == rebalance.protocol_name:
            outcome.records.append(rebalance.record())
            self._answer(self._welcome_back(member, old_leader))
            return undo
        rebalance.park_join(member, self._ticket, outcome)
        if rebalance.state in (STABLE, COMPLETING_REBALANCE):
            # The leader may have been told of the old id: what it assigns would find nobody.
            rebalance.prepare(now_ms, outcome)
        else:
            rebalance.proceed(now_ms, outcome)
        return None

    def _welcome_back(self, member: Member, old_leader: str | None) -> JoinReply:
        """The generation goes on. A leader must not assign anew, or the others would not notice.

        It can be told so (KIP-814); an older client is told of a leader that is not itself.
        """
        reply = self._rebalance.current_generation(member)
        if self._request.can_skip_assignment:
            return reply._replace(skip_assignment=reply.leader == member.member_id)
        return reply._replace(leader=old_leader or "", members=())

    def _answer(self, reply: JoinReply) -> None:
        self.outcome.answers.append((self._ticket, reply))


def take_back(rebalance: Rebalance, undo: Undo, now_ms: int) -> None:
    """A returned static member's new id was not written: the member is who it was."""
    member = undo.member
    if rebalance.members.by_id.get(undo.new_id) is not member:
        return
    rebalance.members.update(
        member, undo.protocols, undo.session_timeout_ms, undo.rebalance_timeout_ms
    )
    rebalance.rename(member, undo.old_id)
    rebalance.expect_heartbeat(member, member.session_timeout_ms, now_ms)
