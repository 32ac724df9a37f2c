"""Looks for the topics that groups subscribe to by expression, beside the requests being served.

A search gives up the event loop after every few names, so that ten thousand topics hold up nobody.
"""

import asyncio
from collections.abc import Callable

from headrace.broker.clock import Clock
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.coordinator import GroupCoordinator
from headrace.coordinators.groups.decision import Decision


class PatternResolver:
    """The searches of one coordinator: one for each group at a time. Event-loop thread only."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        clock: Clock,
        carry_out: Callable[[Decision[None]], None],
    ) -> None:
        self._coordinator, self._clock, self._carry_out = coordinator, clock, carry_out
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def start_due(self) -> None:
        """Begin what the last steps of groups have made necessary."""
        for group in self._coordinator.take_unresolved():
            if not self._is_stopped:
                task = asyncio.get_running_loop().create_task(self._search(group))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    def stop(self) -> None:
        """Let go of what is under way: the first heartbeat after the next start begins anew."""
        self._is_stopped = True
        for task in tuple(self._running):
            task.cancel()

    async def _search(self, group: ConsumerGroup) -> None:
        topics = self._coordinator.topics
        if not group.resolution.is_due(topics):
            return  # another step of the group has begun it
        search = group.resolution.begin(topics)
        try:
            for _ in search.steps:
                await asyncio.sleep(0)
        except BaseException:
            group.resolution.abandon()
            raise
        self._carry_out(self._coordinator.resolved(group, search, self._clock.steady_ms()))
