"""DescribeTopicPartitions (75).

Topics come sorted by name; an answer holds at most so many partitions, and its cursor names the
first topic and partition of the next one (KIP-966).
"""

from bisect import bisect_left
from collections.abc import Iterable

from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.describe_topic_partitions.v0.response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.operations import TOPIC_OPERATIONS
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.topic_names import INTERNAL_TOPICS, check_topic_name
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError
from headrace.model import Topic


async def handle(
    request: DescribeTopicPartitionsRequest, broker: BrokerState, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Describe the topics asked for, none named meaning all, as far as the limit allows."""
    asked = {str(topic.name) for topic in request.topics}
    start_name, start_partition = "", 0
    if request.cursor is not None:
        start_name, start_partition = request.cursor.topic_name, request.cursor.partition_index
        if start_partition < 0 or (asked and start_name not in asked):
            refused = (_missing(name, ErrorCode.invalid_request) for name in sorted(asked))
            return DescribeTopicPartitionsResponse(throttle_time=NO_THROTTLE, topics=tuple(refused))
    limit = min(
        broker.settings.int("max.request.partition.size.limit"), request.response_partition_limit
    )
    known = sorted(asked) or [topic.name for topic in broker.topics.all()]
    names = known[bisect_left(known, start_name) :]
    starts = {start_name: start_partition}
    topics, next_cursor = await _page(names, starts, max(limit, 1), broker)
    return DescribeTopicPartitionsResponse(
        throttle_time=NO_THROTTLE, topics=topics, next_cursor=next_cursor
    )


async def _page(
    names: Iterable[str], starts: dict[str, int], limit: int, broker: BrokerState
) -> tuple[tuple[DescribeTopicPartitionsResponseTopic, ...], Cursor | None]:
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    async for name in in_slices(names):
        if limit == 0:
            return tuple(topics), _cursor(name, 0)
        if not broker.topics.has(name):
            topics.append(_missing(name, _why_missing(name)))
            continue
        topic = broker.topics.get(name)
        start = starts.get(name, 0)
        end = min(topic.partition_count, start + limit)
        topics.append(_describe(topic, range(start, end), broker.node_id))
        if end < topic.partition_count:
            return tuple(topics), _cursor(name, end)
        limit -= max(end - start, 0)
    return tuple(topics), None


def _cursor(name: str, partition: int) -> Cursor:
    return Cursor(topic_name=TopicName(name), partition_index=i32(partition))


def _describe(
    topic: Topic, partitions: range, node_id: int
) -> DescribeTopicPartitionsResponseTopic:
    leader, leader_epoch = BrokerId(node_id), i32(topic.leader_epoch)
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(partition),
                leader_id=leader,
                leader_epoch=leader_epoch,
                replica_nodes=(leader,),
                isr_nodes=(leader,),
                eligible_leader_replicas=(),
                last_known_elr=(),
                offline_replicas=(),
            )
            for partition in partitions
        ),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _why_missing(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except HeadraceError as error:
        return code_for(error)
    return ErrorCode.unknown_topic_or_partition


def _missing(name: str, error_code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error_code,
        name=TopicName(name),
        topic_id=None,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
