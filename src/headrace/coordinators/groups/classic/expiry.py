"""What happens to a classic group when time passes and nothing else does.

Kept simple rather than quick: it looks at every member, but only when a deadline may have come.
Heartbeats move a member's deadline and touch nothing else, so many ticks find nothing to do.
"""

from headrace.coordinators.groups.classic.rebalance import Rebalance
from headrace.coordinators.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    PREPARING_REBALANCE,
    STABLE,
)
from headrace.coordinators.groups.messages import Outcome


def expire(rebalance: Rebalance, now_ms: int) -> Outcome:
    """End every session and every wait that is over, then find the next deadline."""
    outcome = Outcome()
    if rebalance.state == DEAD:
        return outcome
    _expire_expected(rebalance, now_ms, outcome)
    _expire_sessions(rebalance, now_ms, outcome)
    _expire_syncs(rebalance, now_ms, outcome)
    if _is_over(rebalance.join_deadline_ms, now_ms):
        rebalance.end_wait_for_joins(now_ms, outcome)
    rebalance.next_deadline_ms = _next_deadline_ms(rebalance)
    return outcome


def _expire_expected(rebalance: Rebalance, now_ms: int, outcome: Outcome) -> None:
    """Members that were sent back for their id and did not come."""
    pending = rebalance.members.pending
    for member_id in [m for m, deadline_ms in pending.items() if deadline_ms <= now_ms]:
        del pending[member_id]
        _complete_if_all_joined(rebalance, now_ms, outcome)


def _expire_sessions(rebalance: Rebalance, now_ms: int, outcome: Outcome) -> None:
    late = [m for m in rebalance.members if m.deadline_ms <= now_ms and m.can_expire]
    for member in late:
        rebalance.remove(member, outcome)
    if not late:
        return
    if rebalance.state in (STABLE, COMPLETING_REBALANCE):
        rebalance.prepare(now_ms, outcome)
    else:
        _complete_if_all_joined(rebalance, now_ms, outcome)


def _expire_syncs(rebalance: Rebalance, now_ms: int, outcome: Outcome) -> None:
    """Members that joined this generation but did not ask for their part of it."""
    if not _is_over(rebalance.sync_deadline_ms, now_ms):
        return
    rebalance.sync_deadline_ms = None
    late = [m for m in rebalance.members if m.member_id in rebalance.missing_syncs]
    for member in late:
        rebalance.remove(member, outcome)
    if late:
        rebalance.prepare(now_ms, outcome)


def _complete_if_all_joined(rebalance: Rebalance, now_ms: int, outcome: Outcome) -> None:
    if rebalance.state == PREPARING_REBALANCE and rebalance.members.have_all_joined:
        rebalance.complete(now_ms, outcome)


def _is_over(deadline_ms: int | None, now_ms: int) -> bool:
    return deadline_ms is not None and deadline_ms <= now_ms


def _next_deadline_ms(rebalance: Rebalance) -> int | None:
    members = rebalance.members
    deadlines = [member.deadline_ms for member in members if member.can_expire]
    deadlines += members.pending.values()
    deadlines += [
        deadline_ms
        for deadline_ms in (rebalance.join_deadline_ms, rebalance.sync_deadline_ms)
        if deadline_ms is not None
    ]
    return min(deadlines, default=None)
