"""What becomes of a request for the assignment.

Everyone asks; the leader brings the answer for all. Whoever asks before the leader waits, whoever
asks after it is answered at once, as often as it asks.
"""

from headrace.coordinators.groups.classic.member import Member
from headrace.coordinators.groups.classic.rebalance import Rebalance
from headrace.coordinators.groups.classic.states import PREPARING_REBALANCE, STABLE
from headrace.coordinators.groups.messages import Outcome, SyncReply, SyncRequest, Ticket
from headrace.errors import GroupError, InconsistentProtocolError, RebalanceInProgressError


def sync(rebalance: Rebalance, request: SyncRequest, ticket: Ticket, now_ms: int) -> Outcome:
    """Decide on the request. The answer is in the outcome, or the request is parked."""
    outcome = Outcome()
    try:
        member = _check(rebalance, request)
    except GroupError as error:
        outcome.answers.append((ticket, SyncReply(error)))
        return outcome
    rebalance.note_sync(member)
    if rebalance.state == STABLE:
        outcome.answers.append((ticket, rebalance.assignment_of(member)))
        return outcome
    rebalance.park_sync(member, ticket, outcome)
    if member.member_id == rebalance.members.leader:
        rebalance.assign(dict(request.assignments), now_ms, outcome)
    return outcome


def _check(rebalance: Rebalance, request: SyncRequest) -> Member:
    member = rebalance.check(request.member_id, request.group_instance_id, request.generation_id)
    # None: the version of the request does not say.
    if request.protocol_type not in (None, rebalance.members.protocol_type) or (
        request.protocol_name not in (None, rebalance.protocol_name)
    ):
        raise InconsistentProtocolError("not the protocol of this generation")
    if rebalance.state == PREPARING_REBALANCE:
        raise RebalanceInProgressError("join again")
    return member
