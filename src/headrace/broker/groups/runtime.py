"""Carries out what the group coordinator decides: writes, waits for the disk, answers, keeps time.

Event-loop thread only. A decision is written and applied in one go, so no step ever sees a state
that is not in the log; its answers go out when the log is on disk.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from headrace.broker.clock import Clock, Timer
from headrace.broker.groups.environment import group_environment
from headrace.broker.groups.loader import GroupLoader
from headrace.broker.groups.offsets_topic import OffsetsTopic, Storage
from headrace.broker.groups.pattern_resolver import PatternResolver
from headrace.broker.topic_names import GROUP_METADATA_TOPIC
from headrace.broker.topics import Topics
from headrace.coordinators.errors import CoordinatorNotAvailableError, GroupError
from headrace.coordinators.groups.coordinator import GroupCoordinator
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.messages import (
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    JoinReply,
    JoinRequest,
    SyncReply,
    SyncRequest,
    Ticket,
)
from headrace.coordinators.groups.records import GroupRecord, OffsetCommit, TargetAssignmentEpoch
from headrace.errors import HeadraceError
from headrace.log.errors import StorageWriteError
from headrace.metrics import Metrics
from headrace.model import Topic
from headrace.settings.broker_settings import BrokerSettings

_log = logging.getLogger(__name__)
_Reply = TypeVar("_Reply")
_Done = Callable[[GroupError | None], None]

# Groups looked at in one go when offsets expire; others are served in between.
_EXPIRED_AT_ONCE = 100
_NOT_WRITTEN = "The group's state could not be written."


class GroupRuntime:
    """All groups of one broker, with their log, loads and timers."""

    def __init__(
        self,
        topics: Topics,
        settings: BrokerSettings,
        clock: Clock,
        storage: Storage,
        metrics: Metrics,
    ) -> None:
        self._environment = group_environment(topics, settings)
        self._settings, self.clock, self._metrics = settings, clock, metrics
        self.offsets_topic = OffsetsTopic(topics, clock, storage)
        self._parked: set[asyncio.Future[Any]] = set()
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._is_draining = False
        self._begin()

    def _begin(self) -> None:
        self.coordinator = GroupCoordinator(self._environment)
        self._patterns = PatternResolver(self.coordinator, self.clock, self.carry_out_soon)
        self._loader = GroupLoader(
            self.coordinator, self.offsets_topic, self.clock, self.carry_out_soon
        )
        # Asked at every heartbeat, so without a step in between.
        self.is_ready = self._loader.is_ready
        self.ready = self._loader.ready
        self.all_ready = self._loader.all_ready

    # --- before a decision

    def is_writable(self, group_id: str) -> bool:
        """Whether the group is in memory and there is a place for what it decides."""
        return self.offsets_topic.topic is not None and self.is_ready(group_id)

    async def writable(self, group_id: str) -> None:
        """Return when the group is in memory and its records have a place; raises if neither."""
        try:
            await self.offsets_topic.ensure()
        except HeadraceError as error:
            _log.error("the topic of groups cannot be made: %s", error)
            raise CoordinatorNotAvailableError(_NOT_WRITTEN) from error
        await self.ready(group_id)

    # --- requests that may have to wait for others

    async def join(self, request: JoinRequest) -> JoinReply:
        """JoinGroup; returns when the group's next generation begins."""
        await self.writable(request.group_id)
        now_ms = self.clock.steady_ms()
        reply: JoinReply = await self._park(
            lambda ticket: self.coordinator.join(request, ticket, now_ms)
        )
        return reply

    async def sync(self, request: SyncRequest) -> SyncReply:
        """SyncGroup; returns when the leader has brought the assignments."""
        await self.ready(request.group_id)
        now_ms = self.clock.steady_ms()
        reply: SyncReply = await self._park(
            lambda ticket: self.coordinator.sync(request, ticket, now_ms)
        )
        return reply

    async def _park(self, step: Callable[[Ticket], Decision[None]]) -> Any:
        if self._is_draining:
            raise _stopping()
        ticket: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._parked.add(ticket)
        try:
            self.carry_out_soon(step(ticket), lambda error: _refuse(ticket, error))
            return await ticket
        finally:
            self._parked.discard(ticket)

    # --- heartbeats: these write nothing and wait for nobody, or next to never

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """Heartbeat of a group that is ready; raises what the member is to be told."""
        self._metrics.group_heartbeats.value += 1
        now_ms = self.clock.steady_ms()
        self.coordinator.heartbeat(group_id, member_id, group_instance_id, generation_id, now_ms)

    def consumer_heartbeat(
        self, request: ConsumerHeartbeatRequest
    ) -> Decision[ConsumerHeartbeatReply]:
        """ConsumerGroupHeartbeat of a group that is ready; what it returns is to be carried out."""
        self._metrics.group_heartbeats.value += 1
        return self.coordinator.consumer_heartbeat(request, self.clock.steady_ms())

    # --- carrying out

    def carry_out(self, decision: Decision[_Reply]) -> asyncio.Future[_Reply]:
        """Write and apply now; the reply comes when the disk has it, or the error instead.

        Not a coroutine: a decision must be written before anything else is decided.
        """
        reply: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()

        def on_done(error: GroupError | None) -> None:
            if error is None:
                reply.set_result(decision.reply)
            else:
                reply.set_exception(error)

        self.carry_out_soon(decision, on_done)
        return reply

    def carry_out_soon(self, decision: Decision[_Reply], done: _Done | None = None) -> None:
        """Write and apply now; answer, and call `done`, when the disk has it."""
        if not decision.records:
            decision.on_written()
            if self.coordinator.has_unresolved:
                self._patterns.start_due()
            self._answer(decision, None, done)
            return
        try:
            log = self.offsets_topic.append(decision.group_id, decision.records)
        except HeadraceError as error:
            _log.error("records of group %s are not written: %s", decision.group_id, error)
            self._fail(decision, done)
            return
        decision.on_written()
        self._count(decision.records)
        self._keep_time()
        if self.coordinator.has_unresolved:
            self._patterns.start_due()

        def on_disk(failure: StorageWriteError | None) -> None:
            if failure is None:
                self._answer(decision, None, done)
            else:
                self._fail(decision, done)

        self.offsets_topic.on_disk(log, on_disk)

    def _answer(
        self, decision: Decision[_Reply], error: GroupError | None, done: _Done | None
    ) -> None:
        for ticket, reply in decision.answers:
            self._give(ticket, reply if error is None else reply._replace(error=error))
        if done is not None:
            done(error)
        self._keep_time()

    def _fail(self, decision: Decision[_Reply], done: _Done | None) -> None:
        error = CoordinatorNotAvailableError(_NOT_WRITTEN)
        undone = decision.on_failed(self.clock.steady_ms())
        self._answer(decision, error, done)
        for ticket, reply in undone.answers:
            self._give(ticket, reply)

    def _give(self, ticket: Ticket, reply: JoinReply | SyncReply) -> None:
        # Who waited may be gone, with its connection or in a drain.
        assert isinstance(ticket, asyncio.Future)
        if not ticket.done():
            if isinstance(reply, JoinReply) and reply.members:
                self._metrics.group_rebalances.value += 1  # only a leader is told of the members
            ticket.set_result(reply)

    def _count(self, records: Sequence[GroupRecord]) -> None:
        metrics = self._metrics
        for record in records:
            kind = type(record)
            if kind is OffsetCommit:
                metrics.offset_commits.value += 1
            elif kind is TargetAssignmentEpoch:
                metrics.group_rebalances.value += 1

    async def on_disk(self, group_id: str) -> None:
        """Return when what the group has committed would survive a power cut."""
        log = self.offsets_topic.log_of(group_id)
        if log is None:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def callback(failure: StorageWriteError | None) -> None:
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(CoordinatorNotAvailableError(str(failure)))

        self.offsets_topic.on_disk(log, callback)
        await done

    # --- time

    def _keep_time(self) -> None:
        """See that the coordinator is woken when it wants to be."""
        deadline_ms = self.coordinator.next_deadline_ms
        if deadline_ms is None or self._is_draining:
            return
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = self.clock.call_at(deadline_ms, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for decision in self.coordinator.tick(self.clock.settled_ms):
            self.carry_out_soon(decision)
        self._keep_time()

    # --- housekeeping

    async def load(self) -> None:
        """Read all groups from disk, in the background."""
        await self._loader.load_all()
        self._keep_time()

    async def expire(self) -> None:
        """End offsets that are too old, and groups that are empty and have none."""
        retention_ms = self._settings.int("offsets.retention.minutes") * 60_000
        await self.all_ready()
        for at, group in enumerate(self.coordinator.registry.groups(), 1):
            if self.coordinator.registry.by_id.get(group.group_id) is group:
                now_ms = self.clock.now_ms()
                self.carry_out_soon(self.coordinator.expire(group.group_id, now_ms, retention_ms))
            if at % _EXPIRED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def on_topic_deleted(self, topic: Topic) -> None:
        """Forget what groups have read of it; without their own topic, forget the groups."""
        if topic.name == GROUP_METADATA_TOPIC:
            self._release(CoordinatorNotAvailableError("The groups' topic was deleted."))
            self._patterns.stop()
            self._begin()
            return
        for decision in self.coordinator.forget_topic(topic.name, self.clock.steady_ms()):
            self.carry_out_soon(decision)

    def drain(self) -> None:
        """The broker stops: send those who wait away, to come back when it is there again."""
        self._is_draining = True
        self._patterns.stop()
        self._release(_stopping())

    def _release(self, error: GroupError) -> None:
        for ticket in tuple(self._parked):
            _refuse(ticket, error)


def _refuse(ticket: asyncio.Future[Any], error: GroupError | None) -> None:
    if error is not None and not ticket.done():
        ticket.set_exception(error)


def _stopping() -> CoordinatorNotAvailableError:
    return CoordinatorNotAvailableError("The coordinator is not available.")
