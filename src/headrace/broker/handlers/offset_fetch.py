"""OffsetFetch (9).

v2   null topics mean all; error_code of the whole answer
v5   committed_leader_epoch (KIP-320)
v7   require_stable (KIP-447): without transactions every offset is
v8   several groups in one request (KIP-709)
v9   member_id and member_epoch, which are checked (KIP-848)
v10  topics by id; until then by name
"""

from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.primitive import i32, i64

from headrace.broker.error_codes import code_for
from headrace.broker.errors import TopicError
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.coordinators.errors import GroupError
from headrace.coordinators.groups.records import OffsetCommit
from headrace.model import Topic

_GROUP_ERROR_SINCE = 2
_IDS_SINCE = 10
_NO_OFFSET = -1


class FetchedOffset(NamedTuple):
    """One offset; -1 where the group has committed none."""

    partition_index: int
    committed_offset: i64 = i64(_NO_OFFSET)
    committed_leader_epoch: i32 = i32(-1)
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.none


class FetchedTopic(NamedTuple):
    """A topic of the answer: its name until v9, its id from v10 on."""

    name: str
    topic_id: UUID | None
    partitions: tuple[FetchedOffset, ...]


class FetchedGroup(NamedTuple):
    """The answer for one group."""

    group_id: str
    topics: tuple[FetchedTopic, ...]
    error_code: ErrorCode


class FetchResponse(NamedTuple):
    """The answer in the fields of all versions."""

    throttle_time: Any
    groups: tuple[FetchedGroup, ...]


async def handle(request: Any, broker: BrokerState, context: RequestContext) -> FetchResponse:
    """Show how far each group has read: only what a crash cannot take back."""
    version = context.api_version
    groups = [await _fetch(asked, broker, version) for asked in request.groups]
    return FetchResponse(NO_THROTTLE, tuple(groups))


async def _fetch(asked: Any, broker: BrokerState, version: int) -> FetchedGroup:
    group_id = asked.group_id
    try:
        await broker.groups.ready(group_id)
        # First looked up, then awaited: what is committed meanwhile may not be on disk yet.
        found = await _show(group_id, _look_up(asked, broker, version))
        await broker.groups.on_disk(group_id)
    except GroupError as error:
        code = code_for(error)
        # v1 has no other place for it.
        topics = asked.topics if version < _GROUP_ERROR_SINCE else ()
        return FetchedGroup(group_id, tuple(_refused(topic, code) for topic in topics), code)
    return found


class _Found(NamedTuple):
    """What a group has committed of one topic, as of one moment."""

    name: str
    topic_id: UUID | None
    commits: list[tuple[int, OffsetCommit | None]]
    error_code: ErrorCode = ErrorCode.none


def _look_up(asked: Any, broker: BrokerState, version: int) -> list[_Found]:
    """In one go, so that a commit is seen whole or not at all."""
    groups = broker.groups
    group_id = asked.group_id
    look_up = groups.coordinator.fetch_offsets(
        group_id,
        getattr(asked, "member_id", None),
        getattr(asked, "member_epoch", -1),
    )
    if asked.topics is None:
        committed = groups.coordinator.registry.offsets.of_group(group_id)
        return [
            _Found(name, topic.topic_id if topic is not None else None, list(partitions.items()))
            for name, partitions in committed.items()
            for topic in [_by_name(broker, name)]
            if topic is not None or version < _IDS_SINCE
        ]
    found = []
    for one in asked.topics:
        error_code = ErrorCode.none
        topic_id = getattr(one, "topic_id", None)
        commits: list[tuple[int, OffsetCommit | None]]
        topic = _by_id(broker, topic_id) if version >= _IDS_SINCE else None
        if version >= _IDS_SINCE and topic is None:
            error_code = ErrorCode.unknown_topic_id
            commits = [(index, None) for index in one.partition_indexes]
        else:
            name = one.name if topic is None else topic.name
            commits = [(index, look_up(name, index)) for index in one.partition_indexes]
        found.append(_Found(getattr(one, "name", ""), topic_id, commits, error_code))
    return found


async def _show(group_id: str, found: list[_Found]) -> FetchedGroup:
    topics = []
    for one in found:
        partitions = [
            _partition(index, commit, one.error_code)
            async for index, commit in in_slices(one.commits)
        ]
        topics.append(FetchedTopic(one.name, one.topic_id, tuple(partitions)))
    return FetchedGroup(group_id, tuple(topics), ErrorCode.none)


def _by_name(broker: BrokerState, name: str) -> Topic | None:
    try:
        return broker.topics.get(name)
    except TopicError:
        return None


def _by_id(broker: BrokerState, topic_id: UUID | None) -> Topic | None:
    try:
        return None if topic_id is None else broker.topics.get_by_id(topic_id)
    except TopicError:
        return None


def _partition(
    index: int, commit: OffsetCommit | None, error_code: ErrorCode = ErrorCode.none
) -> FetchedOffset:
    if commit is None:
        return FetchedOffset(index, error_code=error_code)
    return FetchedOffset(
        index, i64(commit.offset), i32(commit.leader_epoch), commit.metadata, ErrorCode.none
    )


def _refused(asked: Any, error_code: ErrorCode) -> FetchedTopic:
    return FetchedTopic(
        getattr(asked, "name", ""),
        getattr(asked, "topic_id", None),
        tuple(FetchedOffset(index, error_code=error_code) for index in asked.partition_indexes),
    )
