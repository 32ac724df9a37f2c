"""DeleteRecords (21).

v2  flexible encoding
"""

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i64

from headrace.broker.error_codes import code_for
from headrace.broker.errors import InvalidTopicError
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError
from headrace.log.partition_log import PartitionLog

_NO_WATERMARK = i64(-1)
_HIGH_WATERMARK = -1


async def handle(
    request: DeleteRecordsRequest, broker: BrokerState, context: RequestContext
) -> DeleteRecordsResponse:
    """Move the start of each log to the offset asked for; -1 means the end.

    The new starts are on disk before the answer: what was deleted does not come back.
    """
    topics: list[DeleteRecordsTopicResult] = []
    moved: list[PartitionLog] = []
    for topic in request.topics:
        partitions = [
            _delete(topic.name, partition, broker, moved)
            async for partition in in_slices(topic.partitions)
        ]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(partitions)))
    await broker.topics.checkpoint_starts(moved)
    return DeleteRecordsResponse(throttle_time=NO_THROTTLE, topics=tuple(topics))


def _delete(
    name: str, asked: DeleteRecordsPartition, broker: BrokerState, moved: list[PartitionLog]
) -> DeleteRecordsPartitionResult:
    error_code, low_watermark = ErrorCode.none, _NO_WATERMARK
    try:
        log = broker.topics.log(name, asked.partition_index)
        if broker.topics.get(name).is_internal:
            raise InvalidTopicError(f"Cannot delete records of internal topic {name}")
        if not log.config.is_deleting:
            # What a compacted topic holds is its keys' last values, not a stretch of time.
            error_code = ErrorCode.policy_violation
        elif asked.offset < _HIGH_WATERMARK:
            error_code = ErrorCode.offset_out_of_range
        else:
            low_watermark = i64(log.delete_records(asked.offset))
            moved.append(log)
    except HeadraceError as error:
        error_code = code_for(error)
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=low_watermark,
        error_code=error_code,
    )
