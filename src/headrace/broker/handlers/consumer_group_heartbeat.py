"""ConsumerGroupHeartbeat (68), KIP-848.

v1  subscribed_topic_regex; the member makes its id itself
"""

from collections.abc import Awaitable, Coroutine
from datetime import timedelta
from typing import Any

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32, i32Timedelta

from headrace.broker.error_codes import code_for
from headrace.broker.groups.runtime import GroupRuntime
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.coordinators.errors import GroupError
from headrace.coordinators.groups.messages import ConsumerHeartbeatReply, ConsumerHeartbeatRequest
from headrace.protocol.schema import MILLISECOND

_MAKES_ITS_ID_SINCE = 1
_NO_TIME = i32Timedelta.parse(timedelta(0))

_Response = ConsumerGroupHeartbeatResponse


def handle(
    request: ConsumerGroupHeartbeatRequest, broker: BrokerState, context: RequestContext
) -> _Response | Coroutine[Any, Any, _Response]:
    """Answer at once when nothing has to be written, which is nearly always."""
    heartbeat = _heartbeat(request, context)
    groups = broker.groups
    if not groups.is_writable(heartbeat.group_id):
        return _answer_later(heartbeat, groups)
    try:
        decision = groups.consumer_heartbeat(heartbeat)
    except GroupError as error:
        return _refusal(error)
    if decision.records:
        return _answer_when_written(groups.carry_out(decision))
    groups.carry_out_soon(decision)
    return _response(decision.reply)


async def _answer_later(heartbeat: ConsumerHeartbeatRequest, groups: GroupRuntime) -> _Response:
    try:
        await groups.writable(heartbeat.group_id)
        decision = groups.consumer_heartbeat(heartbeat)
    except GroupError as error:
        return _refusal(error)
    return await _answer_when_written(groups.carry_out(decision))


async def _answer_when_written(reply: Awaitable[ConsumerHeartbeatReply]) -> _Response:
    try:
        return _response(await reply)
    except GroupError as error:
        return _refusal(error)


def _heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerHeartbeatRequest:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return ConsumerHeartbeatRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout // MILLISECOND,
        topic_names=None if names is None else tuple(names),
        topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=(
            None
            if owned is None
            else {one.topic_id: tuple(one.partitions) for one in owned if one.topic_id is not None}
        ),
        client_id=context.client_id,
        client_host=context.member_host,
        makes_its_id=context.api_version >= _MAKES_ITS_ID_SINCE,
    )


def _response(reply: ConsumerHeartbeatReply) -> _Response:
    assignment = reply.assignment
    return ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        member_id=reply.member_id,
        member_epoch=i32(reply.member_epoch),
        heartbeat_interval=i32Timedelta.parse(reply.heartbeat_interval_ms * MILLISECOND),
        assignment=None
        if assignment is None
        else Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=tuple(map(i32, partitions)))
                for topic_id, partitions in assignment.items()
            )
        ),
    )


def _refusal(error: GroupError) -> _Response:
    return ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=code_for(error),
        error_message=str(error),
        member_epoch=i32(0),
        heartbeat_interval=_NO_TIME,
    )
