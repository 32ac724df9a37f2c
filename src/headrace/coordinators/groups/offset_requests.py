"""What groups of any kind are asked about their offsets, and when offsets and groups end.

Kafka's rules: members commit in their generation or epoch, anybody commits to a group without
members, nobody expires what a live group reads, and a group that is empty and has no offsets goes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.coordinator import GroupCoordinator
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.coordinators.groups.records import (
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    Tombstone,
)
from headrace.coordinators.groups.registry import Group
from headrace.errors import (
    GroupError,
    GroupNotFoundError,
    GroupSubscribedError,
    GroupVersionError,
    IllegalGenerationError,
    OffsetMetadataTooLargeError,
)

TopicPartition = tuple[str, int]
Result = GroupError | None
_NEW_PROTOCOL = 1  # DescribedConsumer.member_type
_Reply = TypeVar("_Reply")


class Committer(NamedTuple):
    """Who commits. A generation or epoch below 0 and no member id is nobody in particular."""

    group_id: str
    member_id: str = ""
    group_instance_id: str | None = None
    generation_id_or_member_epoch: int = -1
    knows_epochs: bool = True  # v9+ (KIP-848)


class CommitTime(NamedTuple):
    """When: by the steady clock for sessions, by the wall clock for what is written."""

    now_ms: int
    timestamp_ms: int


def commit_offsets(
    coordinator: GroupCoordinator,
    who: Committer,
    offsets: Sequence[OffsetToCommit],
    when: CommitTime,
    *,
    max_metadata_bytes: int,
    retention_ms: int = -1,
) -> Decision[list[Result]]:
    """OffsetCommit: what became of each offset, in order; raises when the group may not take any.

    A partition may be named twice: each time is judged alone, and the last that is taken stays.
    """
    _check_committer(coordinator, who, offsets, when.now_ms)
    results: list[Result] = []
    accepted = []
    for one in offsets:
        if len(one.metadata or "") > max_metadata_bytes:
            words = "The metadata field of the offset request was too large."
            results.append(OffsetMetadataTooLargeError(words))
        else:
            results.append(None)
            accepted.append(one)
    records = coordinator.offsets.commit(who.group_id, accepted, when.timestamp_ms, retention_ms)
    return _applied(coordinator, who.group_id, results, records, when.now_ms)


def _check_committer(
    coordinator: GroupCoordinator, who: Committer, offsets: Sequence[OffsetToCommit], now_ms: int
) -> None:
    group = coordinator.get(who.group_id)
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
    if not who.knows_epochs and _has_consumer(group, who.member_id):
        raise GroupVersionError("Members of the new protocol commit with version 9 or above.")
    group.check_commit(
        who.member_id,
        who.group_instance_id,
        epoch,
        now_ms,
        partitions=[(one.topic, one.partition) for one in offsets],
        topics=coordinator.surroundings.topics,
    )


def _has_consumer(group: ConsumerGroup, member_id: str) -> bool:
    """Whether a member of this id speaks the new protocol."""
    return any(
        member.member_id == member_id and member.member_type == _NEW_PROTOCOL
        for member in group.describe().members
    )


def fetch_offsets(
    coordinator: GroupCoordinator, group_id: str, member_id: str | None, member_epoch: int
) -> Callable[[str, int], OffsetCommit | None]:
    """OffsetFetch: a way to look offsets up, if this member may; an unknown group has none."""
    group = coordinator.get(group_id)
    if isinstance(group, ConsumerGroup):
        group.check_fetch(member_id, member_epoch)
    return lambda topic, partition: coordinator.offsets.get(group_id, topic, partition)


def delete_offsets(
    coordinator: GroupCoordinator,
    group_id: str,
    partitions: Sequence[TopicPartition],
    now_ms: int,
) -> Decision[dict[TopicPartition, Result]]:
    """OffsetDelete: not what the group reads now."""
    group = _existing(coordinator, group_id)
    if isinstance(group, ClassicGroup):
        group.check_offset_delete()
    results: dict[TopicPartition, Result] = {
        (topic, partition): GroupSubscribedError(
            f"Group {group_id} is subscribed to topic {topic}."
        )
        if group.is_subscribed_to(topic)
        else None
        for topic, partition in partitions
    }
    free = [partition for partition, error in results.items() if error is None]
    records = coordinator.offsets.delete(group_id, free)
    return _applied(coordinator, group_id, results, records, now_ms)


def delete_group(coordinator: GroupCoordinator, group_id: str, now_ms: int) -> Decision[None]:
    """DeleteGroups: the group and all it has committed."""
    group = _existing(coordinator, group_id)
    group.check_delete()
    records = [*coordinator.offsets.delete_all(group_id), *_tombstones(group)]
    return _applied(coordinator, group_id, None, records, now_ms)


def forget_topic(coordinator: GroupCoordinator, topic: str, now_ms: int) -> list[Decision[None]]:
    """A topic was deleted: no group has read it."""
    return [
        _applied(coordinator, group_id, None, records, now_ms)
        for group_id, records in coordinator.offsets.delete_topic(topic).items()
    ]


def forget_missing_topics(
    coordinator: GroupCoordinator, group_id: str, now_ms: int
) -> Decision[None]:
    """After a load: topics may have been deleted, and made anew, while nobody looked here."""
    topics = coordinator.surroundings.topics

    def is_known(one: OffsetCommit) -> bool:
        shape = topics.shape(one.topic)
        return shape is not None and one.topic_id in (None, shape.topic_id)

    records = coordinator.offsets.delete_unless(group_id, is_known)
    return _applied(coordinator, group_id, None, records, now_ms)


def expire(
    coordinator: GroupCoordinator, group_id: str, timestamp_ms: int, retention_ms: int
) -> Decision[None]:
    """End what is too old: offsets, and with the last of them an empty group."""
    group = _existing(coordinator, group_id)
    since_ms = _ageing(group)
    records: list[GroupRecord] = []
    if since_ms is not None:
        records += coordinator.offsets.expire(
            group_id,
            timestamp_ms,
            retention_ms,
            since_ms=since_ms,
            is_subscribed_to=group.is_subscribed_to,
        )
    if group.is_empty and len(records) == coordinator.offsets.count_of(group_id):
        records += _tombstones(group)
    return _applied(coordinator, group_id, None, records, timestamp_ms)


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


def _existing(coordinator: GroupCoordinator, group_id: str) -> Group:
    group = coordinator.get(group_id)
    if group is None:
        raise GroupNotFoundError(f"Group {group_id} not found.")
    return group


def _applied(
    coordinator: GroupCoordinator,
    group_id: str,
    reply: _Reply,
    records: Sequence[GroupRecord],
    now_ms: int,
) -> Decision[_Reply]:
    return Decision(
        group_id,
        reply,
        records,
        on_written=lambda: coordinator.apply_all(records, now_ms),
    )
