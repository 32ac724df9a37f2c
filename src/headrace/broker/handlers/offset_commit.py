"""OffsetCommit (8).

v2   retention_time_ms in the request, until v4
v6   committed_leader_epoch (KIP-320)
v7   group_instance_id (KIP-345)
v9   the generation may be a member's epoch (KIP-848)
v10  topics by id (KIP-848); until then by name
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition

from headrace.broker.error_codes import code_for
from headrace.broker.errors import TopicError
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import Turn
from headrace.coordinators.errors import GroupError
from headrace.coordinators.groups.messages import CommitTime, OffsetCommitter
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.model import Topic
from headrace.protocol.schema import MILLISECOND

_EPOCHS_SINCE = 9
_IDS_SINCE = 10
_ZERO_ID = UUID(int=0)
# Offsets written in one batch: ten milliseconds. A consumer of more partitions than this has its
# commits written in several, and its connection is held meanwhile (`service.py`).
_COMMITTED_AT_ONCE = 1_000


class CommittedTopic(NamedTuple):
    """A topic of the answer: its name until v9, its id from v10 on."""

    name: str | None
    topic_id: UUID | None
    partitions: tuple[OffsetCommitResponsePartition, ...]


class CommitResponse(NamedTuple):
    """The answer in the fields of all versions."""

    throttle_time: Any
    topics: tuple[CommittedTopic, ...]


async def handle(request: Any, broker: BrokerState, context: RequestContext) -> CommitResponse:
    """Write down how far the group has read, each partition with its own result."""
    groups = broker.groups
    offsets: list[OffsetToCommit] = []
    topics: list[tuple[Any, Topic | None]] = []
    turn = Turn()
    for asked in request.topics:
        topic = _find(broker, asked)
        topics.append((asked, topic))
        if topic is not None:
            offsets += [_offset(topic, one) for one in asked.partitions if _is_in(topic, one)]
        if turn.is_over:
            await turn.breathe()
    version = context.api_version
    who = OffsetCommitter(
        request.group_id,
        request.member_id,
        getattr(request, "group_instance_id", None),
        request.generation_id_or_member_epoch,
        knows_epochs=version >= _EPOCHS_SINCE,
    )
    retention = getattr(request, "retention_time", -MILLISECOND)
    codes: list[ErrorCode] = []
    try:
        await groups.writable(request.group_id)
        for start in range(0, max(1, len(offsets)), _COMMITTED_AT_ONCE):
            decision = groups.coordinator.commit_offsets(
                who,
                offsets[start : start + _COMMITTED_AT_ONCE],
                CommitTime(groups.clock.steady_ms(), groups.clock.now_ms()),
                max_metadata_bytes=broker.settings.int("offset.metadata.max.bytes"),
                retention_ms=retention // MILLISECOND,
            )
            codes += [code_for(error) for error in await groups.carry_out(decision)]
    except GroupError as error:
        codes += [code_for(error)] * (len(offsets) - len(codes))
    in_order = iter(codes)
    answers = []
    for asked, topic in topics:
        answers.append(_answer(asked, topic, in_order, version))
        if turn.is_over:
            await turn.breathe()
    return CommitResponse(NO_THROTTLE, tuple(answers))


def _find(broker: BrokerState, asked: Any) -> Topic | None:
    try:
        if hasattr(asked, "name"):
            return broker.topics.get(asked.name)
        return broker.topics.get_by_id(asked.topic_id or _ZERO_ID)
    except TopicError:
        return None


def _is_in(topic: Topic | None, asked: OffsetCommitRequestPartition) -> bool:
    return topic is not None and 0 <= asked.partition_index < topic.partition_count


def _offset(topic: Topic, asked: OffsetCommitRequestPartition) -> OffsetToCommit:
    return OffsetToCommit(
        topic.name,
        asked.partition_index,
        asked.committed_offset,
        getattr(asked, "committed_leader_epoch", -1),
        asked.committed_metadata,
        topic.topic_id,
    )


def _answer(
    asked: Any, topic: Topic | None, codes: Iterator[ErrorCode], version: int
) -> CommittedTopic:
    """Answer for one topic; `codes` are those of the partitions that are there, in order."""
    is_unknown_id = topic is None and version >= _IDS_SINCE
    missing = ErrorCode.unknown_topic_id if is_unknown_id else ErrorCode.unknown_topic_or_partition
    name = getattr(asked, "name", None) or (topic.name if topic is not None else "")
    return CommittedTopic(
        name,
        getattr(asked, "topic_id", None),
        tuple(
            OffsetCommitResponsePartition(
                partition_index=one.partition_index,
                error_code=next(codes) if _is_in(topic, one) else missing,
            )
            for one in asked.partitions
        ),
    )
