"""What becomes of those who leave.

A member goes by its id; an administrator removes an instance by its name alone; who was sent
back for an id (KIP-394) may decide not to come.
"""

from collections.abc import Sequence

from headrace.coordinators.groups.classic.rebalance import Rebalance
from headrace.coordinators.groups.classic.states import DEAD, EMPTY
from headrace.coordinators.groups.messages import LeaveResult, LeavingMember, Outcome
from headrace.errors import CoordinatorNotAvailableError, GroupError


def leave(
    rebalance: Rebalance, members: Sequence[LeavingMember], now_ms: int
) -> tuple[list[LeaveResult], Outcome]:
    """Let go of each; one rebalance for all of them."""
    if rebalance.state == DEAD:
        raise CoordinatorNotAvailableError("the group is no more")
    outcome = Outcome()
    results = [
        LeaveResult(one.member_id, one.group_instance_id, _let_go(rebalance, one, outcome))
        for one in members
    ]
    if rebalance.state != EMPTY and any(result.error is None for result in results):
        rebalance.proceed(now_ms, outcome)
    return results, outcome


def _let_go(rebalance: Rebalance, leaving: LeavingMember, outcome: Outcome) -> GroupError | None:
    members = rebalance.members
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if not member_id and instance_id is not None:
        member_id = members.member_id_of(instance_id) or ""
    if member_id in members.pending:
        members.remove(member_id)
        return None
    try:
        member = members.check(member_id, instance_id)
    except GroupError as error:
        return error
    rebalance.remove(member, outcome)
    return None
