"""Requests of group members, as short as tests want them."""

import datetime
from typing import Any
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment

from headrace.coordinators.groups.consumer_protocol import (
    MemberAssignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)

JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST = 11, 12, 13, 14, 15, 16
COMMIT, FETCH, DELETE, DELETE_OFFSETS, CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE = 8, 9, 42, 47, 68, 69
READS_T = encode_subscription(Subscription(("t",), version=1))
HAS_T = encode_assignment(MemberAssignment({"t": (0, 1)}))
SESSION_MS = 10_000


def milliseconds(count: int) -> Any:
    return datetime.timedelta(milliseconds=count)


def a_join(group_id: str = "g", member_id: str = "", **changes: Any) -> JoinGroupRequest:
    fields = {
        "group_id": group_id,
        "member_id": member_id,
        "session_timeout": milliseconds(SESSION_MS),
        "rebalance_timeout": milliseconds(SESSION_MS),
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=READS_T),),
    }
    return JoinGroupRequest(**fields | changes)


def a_sync(joined: Any, group_id: str = "g", **changes: Any) -> SyncGroupRequest:
    """What a leader sends: all of `t` for everybody."""
    fields = {
        "group_id": group_id,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": tuple(
            SyncGroupRequestAssignment(member_id=one.member_id, assignment=HAS_T)
            for one in joined.members
        ),
    }
    return SyncGroupRequest(**fields | changes)


def a_stable_member(ask: Any, group_id: str = "g") -> Any:
    """Join and sync, so that the group is stable; the answer to the join."""
    joined = ask(JOIN, a_join(group_id), 3)
    assert joined.error_code == 0
    assert ask(SYNC, a_sync(joined, group_id)).error_code == 0
    return joined


def a_beat(group_id: str = "g", member_id: str = "m", epoch: int = 0) -> Any:
    """A heartbeat of the new protocol; epoch 0 joins, reading `t`."""
    is_joining = epoch == 0
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout=milliseconds(SESSION_MS if is_joining else -1),
        subscribed_topic_names=("t",) if is_joining else None,
        topic_partitions=() if is_joining else None,
    )


def a_commit(
    group_id: str = "g",
    member_id: str = "",
    generation_id: int = -1,
    *,
    topics: Any = (("t", 0, 5),),
    metadata: str | None = "",
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=generation_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name,
                partitions=(
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=2,
                        committed_metadata=metadata,
                    ),
                ),
            )
            for name, partition, offset in topics
        ),
    )


def topic_id_of(broker: Any, name: str = "t") -> UUID:
    return broker.topics.get(name).topic_id
