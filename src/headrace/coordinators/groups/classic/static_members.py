"""What becomes of a static member that comes back without its member id (KIP-345).

It takes the place of the one with the same group.instance.id, under a new id; whoever still goes
by the old id is fenced. In a Stable group nothing else changes unless the choice of the protocol
would: a restart of a consumer then costs no rebalance.
"""

from typing import NamedTuple

from headrace.coordinators.groups.classic.member import Member, Protocols
from headrace.coordinators.groups.classic.rebalance import Rebalance
from headrace.coordinators.groups.classic.states import COMPLETING_REBALANCE, STABLE
from headrace.coordinators.groups.messages import JoinReply, JoinRequest, Outcome, Ticket
from headrace.errors import FencedInstanceError


class Undo(NamedTuple):
    """What a member was before it came back, should its new id not be written down."""

    member: Member
    new_id: str
    old_id: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int


def come_back(
    rebalance: Rebalance,
    member: Member,
    member_id: str,
    request: JoinRequest,
    ticket: Ticket,
    now_ms: int,
    outcome: Outcome,
) -> Undo | None:
    """Give `member` the new id; return how to undo it if that alone is to be written."""
    members, old_leader = rebalance.members, rebalance.members.leader
    undo = Undo(
        member,
        member_id,
        member.member_id,
        member.protocols,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
    )
    error = FencedInstanceError(f"instance {member.group_instance_id} is now member {member_id}")
    rebalance.turn_away(member, outcome, error, member.member_id)
    _rename(rebalance, member, member_id)
    member.is_new = False
    members.update(
        member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms
    )
    rebalance.expect_heartbeat(member, member.session_timeout_ms, now_ms)
    if rebalance.state == STABLE and members.choose_protocol() == rebalance.protocol_name:
        outcome.records.append(rebalance.record())
        reply = _welcome(rebalance, member, old_leader, request.can_skip_assignment)
        outcome.answers.append((ticket, reply))
        return undo
    rebalance.park_join(member, ticket, outcome)
    if rebalance.state in (STABLE, COMPLETING_REBALANCE):
        # The leader may have been told of the old id: what it assigns would find nobody.
        rebalance.prepare(now_ms, outcome)
    else:
        rebalance.proceed(now_ms, outcome)
    return None


def take_back(rebalance: Rebalance, undo: Undo, now_ms: int) -> None:
    """The new id was not written: the member is who it was."""
    member = undo.member
    if rebalance.members.by_id.get(undo.new_id) is not member:
        return
    rebalance.members.update(
        member, undo.protocols, undo.session_timeout_ms, undo.rebalance_timeout_ms
    )
    _rename(rebalance, member, undo.old_id)
    rebalance.expect_heartbeat(member, member.session_timeout_ms, now_ms)


def _rename(rebalance: Rebalance, member: Member, member_id: str) -> None:
    if member.member_id in rebalance.missing_syncs:
        rebalance.missing_syncs.remove(member.member_id)
        rebalance.missing_syncs.add(member_id)
    rebalance.members.rename(member, member_id)


def _welcome(
    rebalance: Rebalance, member: Member, old_leader: str | None, can_skip_assignment: bool
) -> JoinReply:
    """The generation goes on. A leader must not assign anew, or the others would not notice.

    It can be told so (KIP-814); an older client is told of a leader that is not itself.
    """
    reply = rebalance.current_generation(member)
    if can_skip_assignment:
        return reply._replace(skip_assignment=reply.leader == member.member_id)
    return reply._replace(leader=old_leader or "", members=())
