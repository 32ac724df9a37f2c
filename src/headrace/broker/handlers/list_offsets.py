"""ListOffsets (2).

v2   isolation_level in the request
v4   current_leader_epoch in the request, leader_epoch in the answer (KIP-320)
v6   flexible encoding
v7   -3, the offset of the largest timestamp (KIP-734)
v8   -4, the earliest local offset (KIP-405)
v9   -5, the latest tiered offset (KIP-1005)
v10  timeout_ms in the request (KIP-1075)
v11  -6, the earliest offset still to be uploaded (KIP-1023)
"""

import logging
from collections import Counter

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v11.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i32, i64

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.leader_epoch import check_leader_epoch
from headrace.broker.lookups import run_beside
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import Turn
from headrace.errors import HeadraceError
from headrace.log.partition_log import PartitionLog
from headrace.log.time_lookup import first_at_or_after, first_of_max_timestamp

_log = logging.getLogger(__name__)


LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(
    -1, -7, -1
)
_FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_UNKNOWN = (-1, -1)


async def handle(
    request: ListOffsetsRequest, broker: BrokerState, context: RequestContext
) -> ListOffsetsResponse:
    """Look up each offset; a time after the last message gives offset -1 and no error."""
    turn = Turn()
    times_asked: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for asked in topic.partitions:
            times_asked[topic.name, asked.partition_index] += 1
            if turn.is_over:
                await turn.breathe()
    topics = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            if turn.is_over:
                await turn.breathe()
            first_version = _FIRST_VERSION.get(asked.timestamp, 99)
            if times_asked[topic.name, asked.partition_index] > 1:
                answers.append(_refusal(asked, ErrorCode.invalid_request))
            elif asked.timestamp < 0 and context.api_version < first_version:
                answers.append(_refusal(asked, ErrorCode.unsupported_version))
            else:
                answers.append(await _look_up(topic.name, asked, broker))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers)))
    return ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=tuple(topics))


async def _look_up(
    name: str, asked: ListOffsetsPartition, broker: BrokerState
) -> ListOffsetsPartitionResponse:
    try:
        log = broker.topics.log(name, asked.partition_index)
        error_code = check_leader_epoch(log, asked.current_leader_epoch)
        if error_code is not ErrorCode.none:
            return _refusal(asked, error_code)
        timestamp, offset = await _find(log, asked.timestamp)
    except HeadraceError as error:
        return _refusal(asked, code_for(error))
    except OSError as error:
        # The disk, or a topic that was deleted while it was searched: both are worth a retry.
        _log.warning("%s-%d cannot be searched: %s", name, asked.partition_index, error)
        return _refusal(asked, ErrorCode.kafka_storage_error)
    is_known = offset >= 0 and (offset > 0 or log.log_end_offset > 0 or asked.timestamp == LATEST)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        timestamp=i64(timestamp),
        offset=i64(offset),
        # Of an empty log Kafka knows no epoch at its start.
        leader_epoch=i32(log.leader_epoch if is_known else -1),
    )


async def _find(log: PartitionLog, timestamp: int) -> tuple[int, int]:
    if timestamp == LATEST:
        return -1, log.log_end_offset
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _UNKNOWN  # there is no tiered storage
    if timestamp == MAX_TIMESTAMP:
        return await run_beside(first_of_max_timestamp(log)) or _UNKNOWN
    return await run_beside(first_at_or_after(log, timestamp)) or _UNKNOWN


def _refusal(asked: ListOffsetsPartition, error_code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=error_code
    )
