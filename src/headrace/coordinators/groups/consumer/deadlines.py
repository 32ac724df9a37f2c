"""Until when members have to be heard of. Soft state: it starts anew when a group is loaded.

A heartbeat only moves a session's end further away, so it needs no timer to be set anew: the
earliest deadline is a lower bound, found again when it has passed.
"""

from collections.abc import Container, Mapping
from typing import NamedTuple

# A member is still there after it was fenced when the records could not be written: try again.
_RETRY_MS = 1_000


class _Rebalance(NamedTuple):
    deadline_ms: int
    member_epoch: int  # it counts only while the member is still in this epoch


class MemberDeadlines:
    """Session, rebalance, join and sync deadlines of a group's members."""

    def __init__(self) -> None:
        self._sessions: dict[str, int] = {}
        self._rebalances: dict[str, _Rebalance] = {}
        self._joins: dict[str, int] = {}  # classic members: to join again
        self._syncs: dict[str, int] = {}  # classic members: to fetch what they were assigned
        self.next_ms: int | None = None

    def session(self, member_id: str, deadline_ms: int) -> None:
        """A member was heard of."""
        self._sessions[member_id] = deadline_ms
        self._include(deadline_ms)

    def rebalance(self, member_id: str, deadline_ms: int, member_epoch: int) -> None:
        """A member has to give up partitions."""
        self._rebalances[member_id] = _Rebalance(deadline_ms, member_epoch)
        self._include(deadline_ms)

    def rebalanced(self, member_id: str) -> None:
        """It has."""
        self._rebalances.pop(member_id, None)

    def join_if_absent(self, member_id: str, deadline_ms: int) -> None:
        """A classic member was told to join again."""
        if member_id not in self._joins:
            self._joins[member_id] = deadline_ms
            self._include(deadline_ms)

    def joined(self, member_id: str, sync_deadline_ms: int) -> None:
        """It has, and has to sync now."""
        self._joins.pop(member_id, None)
        self._syncs[member_id] = sync_deadline_ms
        self._include(sync_deadline_ms)

    def synced(self, member_id: str) -> None:
        """It has."""
        self._syncs.pop(member_id, None)

    def forget(self, member_id: str) -> None:
        """A member is gone."""
        for part in (self._sessions, self._rebalances, self._joins, self._syncs):
            part.pop(member_id, None)

    def is_due(self, now_ms: int) -> bool:
        """Whether it is worth asking who is overdue."""
        return self.next_ms is not None and now_ms >= self.next_ms

    def overdue(
        self, now_ms: int, members: Container[str], revoking: Mapping[str, int]
    ) -> list[str]:
        """Members whose time is over; the bound is found anew.

        `revoking` are those that have yet to give up partitions, and their epochs: a deadline
        that was set for a step that was never written, or for an older one, is void.
        """
        for part in (self._sessions, self._rebalances, self._joins, self._syncs):
            for member_id in [one for one in part if one not in members]:
                del part[member_id]
        for member_id, (_, epoch) in list(self._rebalances.items()):
            if revoking.get(member_id) != epoch:
                del self._rebalances[member_id]
        over: set[str] = set()
        self.next_ms = None
        for deadlines in (
            self._sessions,
            self._joins,
            self._syncs,
            {member_id: found.deadline_ms for member_id, found in self._rebalances.items()},
        ):
            for member_id, deadline_ms in deadlines.items():
                if deadline_ms <= now_ms:
                    over.add(member_id)
                else:
                    self._include(deadline_ms)
        if over:
            self._include(now_ms + _RETRY_MS)
        return sorted(over)

    def _include(self, deadline_ms: int) -> None:
        if self.next_ms is None or deadline_ms < self.next_ms:
            self.next_ms = deadline_ms
