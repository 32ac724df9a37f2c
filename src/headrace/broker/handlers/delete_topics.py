"""DeleteTopics (20).

v3  TOPIC_DELETION_DISABLED as an error
v4  flexible encoding
v5  error_message in the answer
v6  topics can be named by id (KIP-516)

The timeout is not needed: a topic is gone before the answer is written.
"""

from collections import Counter
from functools import partial

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError, RequestError
from headrace.model import Topic

_DISABLED = "Topic deletion is disabled."


async def handle(
    request: DeleteTopicsRequest, broker: BrokerState, context: RequestContext
) -> DeleteTopicsResponse:
    """Delete what can be deleted, and say of each topic what became of it."""
    if not broker.settings.bool("delete.topic.enable"):
        is_known_code = context.api_version >= 3
        code = ErrorCode.topic_deletion_disabled if is_known_code else ErrorCode.invalid_request
        refused = tuple(_result(asked, code, _DISABLED) for asked in request.topics)
        return DeleteTopicsResponse(throttle_time=NO_THROTTLE, responses=refused)
    return await broker.topics.changes.make(partial(_delete, request, broker))


async def _delete(request: DeleteTopicsRequest, broker: BrokerState) -> DeleteTopicsResponse:
    found: dict[str, Topic] = {}
    results: list[DeletableTopicResult] = []
    times_asked = Counter((asked.name, asked.topic_id) for asked in request.topics)
    async for asked in in_slices(dict.fromkeys(request.topics)):
        try:
            topic = _look_up(asked, times_asked[asked.name, asked.topic_id], broker)
            if topic.name in found:
                raise RequestError(
                    "The provided topic name maps to an ID that was already supplied."
                )
            found[topic.name] = topic
        except HeadraceError as error:
            results.append(_result(asked, code_for(error), str(error)))
    code, message = ErrorCode.none, None
    try:
        await broker.topics.delete_now(list(found))
    except HeadraceError as error:
        code, message = code_for(error), str(error)
    for topic in found.values():
        state = DeleteTopicState(name=TopicName(topic.name), topic_id=topic.topic_id)
        results.append(_result(state, code, message))
    return DeleteTopicsResponse(throttle_time=NO_THROTTLE, responses=tuple(results))


def _look_up(asked: DeleteTopicState, times: int, broker: BrokerState) -> Topic:
    if asked.name is not None and asked.topic_id is not None:
        raise RequestError("You may not specify both topic name and topic id.")
    if asked.name is not None:
        if times > 1:
            raise RequestError("Duplicate topic name.")
        return broker.topics.get(asked.name)
    if asked.topic_id is None:
        raise RequestError("Neither topic name nor id were specified.")
    if times > 1:
        raise RequestError("Duplicate topic id.")
    return broker.topics.get_by_id(asked.topic_id)


def _result(
    asked: DeleteTopicState, error_code: ErrorCode, message: str | None
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=asked.name, topic_id=asked.topic_id, error_code=error_code, error_message=message
    )
