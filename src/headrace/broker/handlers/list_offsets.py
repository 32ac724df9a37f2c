"""ListOffsets (2), v1-11.

v2   isolation_level in the request
v4   current_leader_epoch in the request, leader_epoch in the answer (KIP-320)
v6   flexible encoding
v7   -3, the offset of the largest timestamp (KIP-734)
v8   -4, the earliest local offset (KIP-405)
v9   -5, the latest tiered offset (KIP-1005)
v10  timeout_ms in the request (KIP-1075)
v11  -6, the earliest offset still to be uploaded (KIP-1023)
"""

from collections import Counter

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v11.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i32, i64

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.leader_epoch import check_leader_epoch
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import Broker, RequestContext
from headrace.errors import HeadraceError
from headrace.log.partition_log import PartitionLog

VERSIONS = range(1, 12)

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


def handle(
    request: ListOffsetsRequest, broker: Broker, context: RequestContext
) -> ListOffsetsResponse:
    """Look up each offset; a time after the last message gives offset -1 and no error."""
    times_asked = Counter(
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )

    def answer(
        topic: ListOffsetsTopic, asked: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        if times_asked[topic.name, asked.partition_index] > 1:
            return _refusal(asked, ErrorCode.invalid_request)
        if asked.timestamp < 0 and context.api_version < _FIRST_VERSION.get(asked.timestamp, 99):
            return _refusal(asked, ErrorCode.unsupported_version)
        return _look_up(topic.name, asked, broker)

    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(answer(topic, partition) for partition in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _look_up(
    name: str, asked: ListOffsetsPartition, broker: Broker
) -> ListOffsetsPartitionResponse:
    try:
        log = broker.topics.log(name, asked.partition_index)
        error_code = check_leader_epoch(log, asked.current_leader_epoch)
        if error_code is not ErrorCode.none:
            return _refusal(asked, error_code)
        timestamp, offset = _find(log, asked.timestamp)
    except HeadraceError as error:
        return _refusal(asked, code_for(error))
    is_known = offset >= 0 and (offset > 0 or log.log_end_offset > 0 or asked.timestamp == LATEST)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        timestamp=i64(timestamp),
        offset=i64(offset),
        # Of an empty log Kafka knows no epoch at its start.
        leader_epoch=i32(log.leader_epoch if is_known else -1),
    )


def _find(log: PartitionLog, timestamp: int) -> tuple[int, int]:
    if timestamp == LATEST:
        return -1, log.log_end_offset
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _UNKNOWN  # there is no tiered storage
    if timestamp == MAX_TIMESTAMP:
        return log.offset_of_max_timestamp() or _UNKNOWN
    return log.offset_for_time(timestamp) or _UNKNOWN


def _refusal(asked: ListOffsetsPartition, error_code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=error_code
    )
