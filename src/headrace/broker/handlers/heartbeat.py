"""Heartbeat (12).

v3  group_instance_id (KIP-345)

The one group request that comes all the time: no task, no write, no timer.
"""

from collections.abc import Coroutine
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse

from headrace.broker.error_codes import code_for
from headrace.broker.groups.runtime import GroupRuntime
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.coordinators.errors import GroupError

_ALL_IS_WELL = HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.none)


def handle(
    request: HeartbeatRequest, broker: BrokerState, context: RequestContext
) -> HeartbeatResponse | Coroutine[Any, Any, HeartbeatResponse]:
    """Keep the member's session, and tell it when it has to join again."""
    groups = broker.groups
    if groups.is_ready(request.group_id):
        return _answer(request, groups)
    return _answer_later(request, groups)


async def _answer_later(request: HeartbeatRequest, groups: GroupRuntime) -> HeartbeatResponse:
    try:
        await groups.ready(request.group_id)
    except GroupError as error:
        return _refusal(error)
    return _answer(request, groups)


def _answer(request: HeartbeatRequest, groups: GroupRuntime) -> HeartbeatResponse:
    try:
        groups.heartbeat(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
    except GroupError as error:
        return _refusal(error)
    return _ALL_IS_WELL


def _refusal(error: GroupError) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=code_for(error))
