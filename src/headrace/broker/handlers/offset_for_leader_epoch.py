"""OffsetForLeaderEpoch (23).

v2  current_leader_epoch in the request (KIP-320)
v3  replica_id in the request
v4  flexible encoding
"""

from kio.schema.errors import ErrorCode
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from kio.schema.offset_for_leader_epoch.v4.response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kio.static.primitive import i32, i64

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.leader_epoch import check_leader_epoch
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError


async def handle(
    request: OffsetForLeaderEpochRequest, broker: BrokerState, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Tell where each epoch ends: how a client finds out that a log was truncated."""
    return OffsetForLeaderEpochResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            [
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=tuple(
                        [
                            _look_up(topic.topic, partition, broker)
                            async for partition in in_slices(topic.partitions)
                        ]
                    ),
                )
                for topic in request.topics
            ]
        ),
    )


def _look_up(name: str, asked: OffsetForLeaderPartition, broker: BrokerState) -> EpochEndOffset:
    try:
        log = broker.topics.log(name, asked.partition)
        error_code = check_leader_epoch(log, asked.current_leader_epoch)
        if error_code is not ErrorCode.none:
            return EpochEndOffset(error_code=error_code, partition=asked.partition)
        if asked.leader_epoch == log.leader_epoch:
            # Kafka's leader writes its epoch down when it is elected, before any message.
            epoch, end_offset = log.leader_epoch, log.log_end_offset
        else:
            epoch, end_offset = log.end_offset_for_epoch(asked.leader_epoch)
    except HeadraceError as error:
        return EpochEndOffset(error_code=code_for(error), partition=asked.partition)
    return EpochEndOffset(
        error_code=ErrorCode.none,
        partition=asked.partition,
        leader_epoch=i32(epoch),
        end_offset=i64(end_offset),
    )
