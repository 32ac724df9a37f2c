"""What becomes of a request to join.

Newcomers with a name of their own (static members, KIP-345) and old clients come in at once;
others are sent back for an id first (KIP-394), so that a client that tries again is not counted
twice. Known members start a rebalance only if they have something new to say, or lead.
"""

from collections.abc import Callable

from headrace.coordinators.groups.classic import static_members
from headrace.coordinators.groups.classic.member import Member
from headrace.coordinators.groups.classic.rebalance import Rebalance
from headrace.coordinators.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from headrace.coordinators.groups.messages import JoinReply, JoinRequest, Outcome, Ticket
from headrace.errors import (
    CoordinatorNotAvailableError,
    GroupError,
    GroupFullError,
    InconsistentProtocolError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
)

# Whoever waits in its first join sends no heartbeats, and a closed connection is not noticed. As
# Kafka does, give up on it after this time; a client that is still there joins again.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class Join:
    """One request to join, on its way through the group."""

    def __init__(
        self, rebalance: Rebalance, request: JoinRequest, ticket: Ticket, now_ms: int
    ) -> None:
        self.outcome = Outcome()
        self.undo: static_members.Undo | None = None  # if the record cannot be written
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
        self._members.pending.pop(member_id, None)
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
                member = self._members.by_id[current]
                self.undo = static_members.come_back(
                    self._rebalance,
                    member,
                    member_id,
                    request,
                    self._ticket,
                    self._now_ms,
                    self.outcome,
                )
        elif request.must_know_its_id:
            deadline_ms = self._now_ms + request.session_timeout_ms
            self._members.pending[member_id] = deadline_ms
            self._rebalance.watch(deadline_ms)
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
        request, rebalance = self._request, self._rebalance
        member = Member(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
        )
        member.is_new = True
        rebalance.has_grown = True
        self._members.add(member, request.protocol_type)
        rebalance.park_join(member, self._ticket, self.outcome)
        rebalance.expect_heartbeat(member, NEW_MEMBER_JOIN_TIMEOUT_MS, self._now_ms)
        rebalance.proceed(self._now_ms, self.outcome)

    def _answer(self, reply: JoinReply) -> None:
        self.outcome.answers.append((self._ticket, reply))
