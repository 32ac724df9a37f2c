"""When which group wants to be woken: the earliest first.

A deadline that moves later is not moved here: the group is woken early, finds nothing to do and
says anew. That is what keeps a heartbeat free of any of this.
"""

import heapq


class GroupDeadlines:
    """One deadline for each group at most."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, str]] = []
        self._by_group: dict[str, int] = {}

    @property
    def next_ms(self) -> int | None:
        """When `due` may have something to return; perhaps too early, never too late."""
        return self._queue[0][0] if self._queue else None

    def note(self, group_id: str, deadline_ms: int | None) -> None:
        """The group wants to be woken at this time, or earlier if it said so before."""
        if deadline_ms is None:
            return
        noted = self._by_group.get(group_id)
        if noted is None or deadline_ms < noted:
            self._by_group[group_id] = deadline_ms
            heapq.heappush(self._queue, (deadline_ms, group_id))

    def forget(self, group_id: str) -> None:
        """The group is gone."""
        self._by_group.pop(group_id, None)

    def due(self, now_ms: int) -> list[str]:
        """The groups to wake now; each must `note` its next deadline again."""
        groups = []
        while self._queue and self._queue[0][0] <= now_ms:
            deadline_ms, group_id = heapq.heappop(self._queue)
            if self._by_group.get(group_id) == deadline_ms:
                del self._by_group[group_id]
                groups.append(group_id)
        return groups
