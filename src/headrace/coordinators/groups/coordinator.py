"""All groups of this broker: finds the group, knows its kind, and asks it.

A group is a `ClassicGroup` or a `ConsumerGroup` (KIP-848), and may turn from one into the other.
Classic groups change at once and are told when a write failed; groups of the new protocol, and
offsets, change only when `on_written` applies what was written. Nothing here does I/O.

Of offsets Kafka's rules hold: members commit in their generation or epoch, anybody commits to a
group without members, nobody expires what a live group reads, and a group that is empty and has no
offsets goes.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    GroupError,
    GroupNotFoundError,
    GroupSubscribedError,
    GroupVersionError,
    IllegalGenerationError,
    InvalidGroupIdError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer.downgrade import Downgrade
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.consumer.migration import downgraded, upgrade
from headrace.coordinators.groups.consumer.resolution import Search
from headrace.coordinators.groups.consumer.validation import validate_heartbeat
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.messages import (
    CommitTime,
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    DescribedConsumerGroup,
    DescribedGroup,
    GroupOutcome,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    OffsetCommitter,
    SyncRequest,
    Ticket,
)
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.coordinators.groups.records import (
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    Tombstone,
)
from headrace.coordinators.groups.registry import Group, GroupEnvironment, GroupRegistry

_Reply = TypeVar("_Reply")

# A group whose step could not be written, and so still is due, is woken again after this time.
_RETRY_MS = 1_000
_JOINS = 0


def _rebalancing() -> RebalanceInProgressError:
    return RebalanceInProgressError("The group is rebalancing, so a rejoin is needed.")


class GroupCoordinator:
    """Single-threaded. Every method that changes something returns a `Decision` to carry out."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.topics = environment.topics
        self.registry = GroupRegistry(environment)
        self._groups = self.registry.by_id
        self._deadlines = self.registry.deadlines
        self._unresolved: dict[str, ConsumerGroup] = {}

    # --- looking

    def describe_classic(self, group_id: str) -> DescribedGroup:
        """The classic group as DescribeGroups shows it."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise GroupNotFoundError(f"Group {group_id} is not a classic group.")
        return group.describe()

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        """The group of the new protocol as ConsumerGroupDescribe shows it."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupNotFoundError(f"Group {group_id} is not a consumer group.")
        return group.describe()

    # --- the classic protocol

    def join(self, request: JoinRequest, ticket: Ticket, now_ms: int) -> Decision[None]:
        """JoinGroup: the answer comes with `ticket`, now or later."""
        group_id = request.group_id
        if not group_id:
            raise InvalidGroupIdError("The configured groupId is invalid.")
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            outcome = group.join(request, ticket, self.topics, now_ms)
            return self._sourced(group, None, outcome, now_ms)
        if isinstance(group, ClassicGroup):
            return self._classic(group, None, group.join(request, ticket, now_ms))
        if request.member_id:
            raise UnknownMemberError("The coordinator is not aware of this member.")
        fresh = self.registry.new_classic(group_id, now_ms)
        outcome = fresh.join(request, ticket, now_ms)
        if fresh.is_vacant:
            # It was refused, and without an id to come back with.
            return Decision(group_id, None, answers=outcome.answers)
        if group is not None:
            # The empty group of the other protocol ends with this join.
            outcome.records[:0] = group.tombstones()
        self.registry.put(fresh)
        decision = self._classic(fresh, None, outcome)

        def on_failed(now_ms: int) -> GroupOutcome:
            if group is None:
                self.registry.remove(group_id)
            else:
                self.registry.put(group)
            return fresh.die(CoordinatorNotAvailableError("The new group could not be written."))

        decision.on_failed = on_failed
        return decision

    def sync(self, request: SyncRequest, ticket: Ticket, now_ms: int) -> Decision[None]:
        """SyncGroup: the answer comes with `ticket`, now or later."""
        group = self._group_of_member(request.group_id)
        if isinstance(group, ConsumerGroup):
            outcome = group.sync(request, ticket, self.topics, now_ms)
            return self._sourced(group, None, outcome, now_ms)
        return self._classic(group, None, group.sync(request, ticket, now_ms))

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now_ms: int,
    ) -> None:
        """Heartbeat: all is well unless it raises. Only moves deadlines to later."""
        group = self._group_of_member(group_id)
        if isinstance(group, ClassicGroup):
            group.heartbeat(member_id, group_instance_id, generation_id, now_ms)
        else:
            group.classic_heartbeat(member_id, group_instance_id, generation_id, now_ms)

    def leave(
        self, group_id: str, members: Sequence[LeavingMember], now_ms: int
    ) -> Decision[list[LeaveResult]]:
        """LeaveGroup: what became of each."""
        group = self._group_of_member(group_id)
        if isinstance(group, ConsumerGroup):
            results, outcome = group.leave(members, self.topics, now_ms)
            return self._sourced(group, results, outcome, now_ms)
        results, outcome = group.leave(members, now_ms)
        return self._classic(group, results, outcome)

    # --- the new protocol

    def consumer_heartbeat(
        self, request: ConsumerHeartbeatRequest, now_ms: int
    ) -> Decision[ConsumerHeartbeatReply]:
        """ConsumerGroupHeartbeat: join, stay, change one's mind or leave."""
        group_id = request.group_id
        topics = self.topics
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            reply, outcome = group.heartbeat(request, topics, now_ms)
            return self._sourced(group, reply, outcome, now_ms)
        validate_heartbeat(request, self.registry.environment.consumer_limits(group_id))
        if request.member_epoch != _JOINS:
            if group is None:
                kind = "Consumer group" if request.member_epoch > _JOINS else "Group"
                raise GroupNotFoundError(f"{kind} {group_id} not found.")
            raise GroupNotFoundError(f"Group {group_id} is not a consumer group.")
        if group is None:
            fresh = self.registry.new_consumer(group_id, now_ms)
            reply, outcome = fresh.heartbeat(request, topics, now_ms)
            return self._replacing(fresh, reply, outcome, (), None)
        up = upgrade(
            group,
            topics,
            lambda: self.registry.environment.consumer_limits(group_id),
            make_member_id=self.registry.environment.make_consumer_member_id,
            now_ms=now_ms,
        )
        reply, outcome = up.group.heartbeat(request, topics, now_ms)
        return self._replacing(up.group, reply, outcome, up.records, group)

    # --- offsets

    def commit_offsets(
        self,
        who: OffsetCommitter,
        offsets: Sequence[OffsetToCommit],
        when: CommitTime,
        *,
        max_metadata_bytes: int,
        retention_ms: int = -1,
    ) -> Decision[list[GroupError | None]]:
        """OffsetCommit: what became of each offset, in order; raises if the group may take none.

        A partition may be named twice: each time is judged alone, and the last that is taken stays.
        """
        self._check_committer(who, offsets, when.now_ms)
        results: list[GroupError | None] = []
        accepted = []
        for one in offsets:
            if len(one.metadata or "") > max_metadata_bytes:
                words = "The metadata field of the offset request was too large."
                results.append(OffsetMetadataTooLargeError(words))
            else:
                results.append(None)
                accepted.append(one)
        committed = self.registry.offsets
        records = committed.commit(who.group_id, accepted, when.timestamp_ms, retention_ms)
        return self._applied(who.group_id, results, records, when.now_ms)

    def _check_committer(
        self, who: OffsetCommitter, offsets: Sequence[OffsetToCommit], now_ms: int
    ) -> None:
        group = self._groups.get(who.group_id)
        epoch = who.generation_id_or_member_epoch
        if group is None:
            if epoch < 0:
                return  # a consumer that assigns its partitions itself, or an administrator
            if who.knows_epochs:
                raise GroupNotFoundError(f"Group {who.group_id} not found.")
            raise IllegalGenerationError("Specified group generation id is not valid.")
        if isinstance(group, ClassicGroup):
            group.check_commit(who.member_id, who.group_instance_id, epoch, now_ms)
            return
        if not who.knows_epochs and group.has_consumer(who.member_id):
            raise GroupVersionError("Members of the new protocol commit with version 9 or above.")
        group.check_commit(
            who.member_id,
            who.group_instance_id,
            epoch,
            partitions=[(one.topic, one.partition) for one in offsets],
            topics=self.topics,
        )

    def fetch_offsets(
        self, group_id: str, member_id: str | None, member_epoch: int
    ) -> Callable[[str, int], OffsetCommit | None]:
        """OffsetFetch: a way to look offsets up, if this member may; an unknown group has none."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.check_fetch(member_id, member_epoch)
        offsets = self.registry.offsets
        return lambda topic, partition: offsets.get(group_id, topic, partition)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[tuple[str, int]], now_ms: int
    ) -> Decision[dict[tuple[str, int], GroupError | None]]:
        """OffsetDelete: not what the group reads now."""
        group = self._existing(group_id)
        if isinstance(group, ClassicGroup):
            group.check_offset_delete()
        results: dict[tuple[str, int], GroupError | None] = {
            (topic, partition): GroupSubscribedError(
                f"Group {group_id} is subscribed to topic {topic}."
            )
            if group.is_subscribed_to(topic)
            else None
            for topic, partition in partitions
        }
        free = [partition for partition, error in results.items() if error is None]
        records = self.registry.offsets.delete(group_id, free)
        return self._applied(group_id, results, records, now_ms)

    def forget_topic(self, topic: str, now_ms: int) -> list[Decision[None]]:
        """A topic was deleted: no group has read it."""
        return [
            self._applied(group_id, None, records, now_ms)
            for group_id, records in self.registry.offsets.delete_topic(topic).items()
        ]

    def forget_missing_topics(self, group_id: str, now_ms: int) -> Decision[None]:
        """After a load: topics may have been deleted, and made anew, while nobody looked here."""

        def is_known(one: OffsetCommit) -> bool:
            shape = self.topics.shape(one.topic)
            return shape is not None and one.topic_id in (None, shape.topic_id)

        records = self.registry.offsets.delete_unless(group_id, is_known)
        return self._applied(group_id, None, records, now_ms)

    # --- the end of a group

    def delete_group(self, group_id: str, now_ms: int) -> Decision[None]:
        """DeleteGroups: the group and all it has committed."""
        group = self._existing(group_id)
        group.check_delete()
        records = [*self.registry.offsets.delete_all(group_id), *_tombstones(group)]
        return self._applied(group_id, None, records, now_ms)

    def expire(self, group_id: str, timestamp_ms: int, retention_ms: int) -> Decision[None]:
        """End what is too old: offsets, and with the last of them an empty group."""
        group = self._existing(group_id)
        since_ms = _ageing(group)
        offsets = self.registry.offsets
        records: list[GroupRecord] = []
        if since_ms is not None:
            records += offsets.expire(
                group_id,
                timestamp_ms,
                retention_ms,
                since_ms=since_ms,
                is_subscribed_to=group.is_subscribed_to,
            )
        if group.is_empty and len(records) == offsets.count_of(group_id):
            records += _tombstones(group)
        return self._applied(group_id, None, records, timestamp_ms)

    # --- subscriptions by expression

    @property
    def has_unresolved(self) -> bool:
        """Whether `take_unresolved` may have something to return."""
        return bool(self._unresolved)

    def take_unresolved(self) -> list[ConsumerGroup]:
        """Groups that have expressions to resolve since this was last asked for."""
        due, self._unresolved = self._unresolved, {}
        return [group for group_id, group in due.items() if self._groups.get(group_id) is group]

    def resolved(self, group: ConsumerGroup, search: Search, now_ms: int) -> Decision[None]:
        """The search came to its end: what it found makes an epoch of its own."""
        if self._groups.get(group.group_id) is not group:
            return Decision(group.group_id, None)
        outcome = group.resolution.outcome(search, self.topics, now_ms)
        decision = Decision(group.group_id, None, outcome.records)

        def on_written() -> None:
            self.registry.apply_all(outcome.records, now_ms)
            group.resolution.end(search)
            self._settle(group)

        decision.on_written = on_written
        return decision

    # --- time

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` wants to be called next; perhaps too early, never too late."""
        return self._deadlines.next_ms

    def tick(self, now_ms: int) -> list[Decision[None]]:
        """Let time pass in the groups that wait for it."""
        decisions = []
        for group in self.registry.due(now_ms):
            if isinstance(group, ClassicGroup):
                decisions.append(self._classic(group, None, group.tick(now_ms)))
            else:
                outcome = group.tick(self.topics, now_ms)
                decisions.append(self._sourced(group, None, outcome, now_ms))
            self.registry.note(group, at_least_ms=now_ms + _RETRY_MS)
        return decisions

    # --- making decisions

    def _group_of_member(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        """The group that a member speaks of; a member of no group is not known."""
        if not group_id:
            raise InvalidGroupIdError("The configured groupId is invalid.")
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberError("The coordinator is not aware of this member.")
        return group

    def _existing(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        return group

    def _applied(
        self, group_id: str, reply: _Reply, records: Sequence[GroupRecord], now_ms: int
    ) -> Decision[_Reply]:
        """What is written makes it so."""
        return Decision(
            group_id,
            reply,
            records,
            on_written=lambda: self.registry.apply_all(records, now_ms),
        )

    def _classic(
        self, group: ClassicGroup, reply: _Reply, outcome: GroupOutcome
    ) -> Decision[_Reply]:
        def on_failed(now_ms: int) -> GroupOutcome:
            undone = group.write_failed(now_ms)
            self.registry.note(group)
            return undone

        self.registry.note(group)
        return Decision(
            group.group_id, reply, outcome.records, outcome.answers, on_failed=on_failed
        )

    def _sourced(
        self, group: ConsumerGroup, reply: _Reply, outcome: GroupOutcome, now_ms: int
    ) -> Decision[_Reply]:
        decision = Decision(group.group_id, reply, outcome.records, outcome.answers)

        def on_written() -> None:
            self.registry.apply_all(outcome.records, now_ms)
            self._settle(group)

        def on_downgraded() -> None:
            assert isinstance(outcome, Downgrade)
            limits = self.registry.environment.classic_limits()
            make_id = self.registry.environment.make_classic_member_id
            classic, more = downgraded(outcome, limits, make_member_id=make_id, now_ms=now_ms)
            self.registry.put(classic)
            decision.answers += more.answers

        if isinstance(outcome, Downgrade):
            decision.on_written = on_downgraded
        elif outcome.records:
            decision.on_written = on_written
        else:
            self.registry.note(group)
            if group.resolution.in_use:
                self._settle(group)
        return decision

    def _settle(self, group: ConsumerGroup) -> None:
        """After a step: when does the group want to be woken, and has it something to look up?"""
        self.registry.note(group)
        if group.resolution.is_due(self.topics):
            self._unresolved[group.group_id] = group

    def _replacing(
        self,
        group: ConsumerGroup,
        reply: _Reply,
        outcome: GroupOutcome,
        records: Sequence[GroupRecord],
        replaced: ClassicGroup | None,
    ) -> Decision[_Reply]:
        """`group` takes its place when `records` and those of `outcome` are written."""
        decision = Decision(
            group.group_id, reply, [*records, *outcome.records], list(outcome.answers)
        )

        def on_written() -> None:
            for record in outcome.records:
                group.apply(record)
            self.registry.put(group)
            self._settle(group)
            if replaced is not None:
                decision.answers += replaced.die(_rebalancing()).answers

        decision.on_written = on_written
        return decision


def _ageing(group: Group) -> Callable[[OffsetCommit], int] | None:
    """From when an offset of this group ages; None: not at all."""
    if isinstance(group, ConsumerGroup) or not group.protocol_type:
        return _commit_time
    if group.is_empty:
        return lambda one: max(group.state_timestamp_ms, 0) or one.commit_timestamp_ms
    is_read = group.state == "Stable" and group.subscribed_topics() is not None
    return _commit_time if is_read else None


def _commit_time(one: OffsetCommit) -> int:
    return one.commit_timestamp_ms


def _tombstones(group: Group) -> list[GroupRecord]:
    if isinstance(group, ConsumerGroup):
        return group.tombstones()
    return [Tombstone(GroupMetadata, (group.group_id,))]
