"""OffsetDelete (47)."""

from kio.schema.errors import ErrorCode
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from headrace.broker.error_codes import code_for
from headrace.broker.errors import UnknownTopicError
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.coordinators.errors import GroupError, InvalidGroupIdError


async def handle(
    request: OffsetDeleteRequest, broker: BrokerState, context: RequestContext
) -> OffsetDeleteResponse:
    """Delete offsets of topics that the group does not read."""
    groups = broker.groups
    codes: dict[tuple[str, int], ErrorCode] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            codes[topic.name, partition.partition_index] = _existence(
                broker, topic.name, partition.partition_index
            )
    known = [partition for partition, code in codes.items() if code is ErrorCode.none]
    try:
        if not request.group_id:
            raise InvalidGroupIdError("The configured groupId is invalid.")
        await groups.ready(request.group_id)
        now_ms = groups.clock.steady_ms()
        decision = groups.coordinator.delete_offsets(request.group_id, known, now_ms)
        results = await groups.carry_out(decision)
    except GroupError as error:
        return OffsetDeleteResponse(
            error_code=code_for(error), throttle_time=NO_THROTTLE, topics=()
        )
    codes |= {partition: code_for(error) for partition, error in results.items()}
    return OffsetDeleteResponse(
        error_code=ErrorCode.none,
        throttle_time=NO_THROTTLE,
        topics=tuple(_topic(topic, codes) for topic in request.topics),
    )


def _existence(broker: BrokerState, topic: str, partition: int) -> ErrorCode:
    try:
        is_there = 0 <= partition < broker.topics.get(topic).partition_count
    except UnknownTopicError:
        is_there = False
    return ErrorCode.none if is_there else ErrorCode.unknown_topic_or_partition


def _topic(
    asked: OffsetDeleteRequestTopic, codes: dict[tuple[str, int], ErrorCode]
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=asked.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(
                partition_index=one.partition_index,
                error_code=codes[asked.name, one.partition_index],
            )
            for one in asked.partitions
        ),
    )
