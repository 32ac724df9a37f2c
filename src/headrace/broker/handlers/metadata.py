"""Metadata (3).

v0   an empty list asks for all topics; v1+ null does, and an empty list asks for none
v4   allow_auto_topic_creation in the request; before, it is always allowed
v7   leader_epoch of each partition (KIP-320)
v8   authorized operations on request (KIP-430); the cluster's left again with v11
v9   flexible encoding
v10  topic ids in the answer (KIP-516)
v12  topics can be asked for by id
v13  an error code for the whole answer (KIP-1102)

Unlike Kafka, which answers LEADER_NOT_AVAILABLE while its controller is at work, a topic that is
created by being asked for is there in the same answer.
"""

from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v10.response import MetadataResponse, MetadataResponseBroker
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from headrace.broker.error_codes import code_for
from headrace.broker.errors import UnknownTopicError, UnknownTopicIdError
from headrace.broker.handlers.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.topic_names import INTERNAL_TOPICS, check_topic_name
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError
from headrace.model import Topic
from headrace.protocol.codec import Encoded, encode_response
from headrace.protocol.metadata import MetadataWriter

# `dispatch` has this request seen as v10, the newest that still has the cluster's authorized
# operations: later versions only dropped fields, but for an error code that is never set here.

_FIRST_VERSION_WITH_IDS = 12
# Topics and partitions that are written in one go, which takes a millisecond; an answer with
# more is written in slices.
_WRITTEN_AT_ONCE = 500


class _Refusal(NamedTuple):
    """A topic that was asked for and is not shown."""

    error_code: ErrorCode
    name: str | None
    topic_id: UUID | None = None


_Found = Sequence[Topic | _Refusal]


def handle(
    request: MetadataRequest, broker: BrokerState, context: RequestContext
) -> Encoded | Coroutine[Any, Any, Encoded]:
    """Describe the cluster, which is this broker, and the topics asked for."""
    asked = request.topics
    if asked is None or (context.api_version == 0 and not asked):
        found: _Found = broker.topics.all()
    elif any(_is_malformed(one, context.api_version) for one in asked):
        request = replace(request, include_topic_authorized_operations=False)
        found = [_Refusal(ErrorCode.invalid_request, one.name or "") for one in asked]
    elif any(one.topic_id is not None for one in asked):
        found = _look_up_ids(asked, broker)
    else:
        names = list(dict.fromkeys(one.name or "" for one in asked))
        is_creating = request.allow_auto_topic_creation and broker.settings.bool(
            "auto.create.topics.enable"
        )
        if is_creating and not all(map(broker.topics.has, names)):
            return _create_and_answer(names, request, broker, context)
        found = _look_up_names(names, broker)
    return _answer(found, request, broker, context)


def _answer(
    found: _Found, request: MetadataRequest, broker: BrokerState, context: RequestContext
) -> Encoded | Coroutine[Any, Any, Encoded]:
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    writer = MetadataWriter(context.api_version, broker.node_id, operations)
    around = _around_the_topics(request, broker, context)
    if _weight(found) <= _WRITTEN_AT_ONCE:
        return writer.fill(around, [_write(one, writer) for one in found])
    return _write_in_slices(found, writer, around)


def _weight(found: _Found) -> int:
    if len(found) > _WRITTEN_AT_ONCE:
        return len(found)
    return len(found) + sum([one.partition_count for one in found if isinstance(one, Topic)])


async def _write_in_slices(found: _Found, writer: MetadataWriter, around: bytes) -> Encoded:
    return writer.fill(around, [_write(one, writer) async for one in in_slices(found)])


def _write(found: Topic | _Refusal, writer: MetadataWriter) -> bytes:
    if isinstance(found, Topic):
        return writer.topic(found)
    is_internal = found.name in INTERNAL_TOPICS
    return writer.refusal(found.error_code, found.name, found.topic_id, is_internal=is_internal)


def _around_the_topics(
    request: MetadataRequest, broker: BrokerState, context: RequestContext
) -> bytes:
    wants_cluster = request.include_cluster_authorized_operations
    response = MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=(
            MetadataResponseBroker(
                node_id=BrokerId(broker.node_id),
                host=broker.advertised_host,
                port=i32(broker.advertised_port),
                rack=broker.settings.optional_str("broker.rack"),
            ),
        ),
        cluster_id=broker.cluster_id,
        controller_id=BrokerId(broker.node_id),
        topics=(),
        cluster_authorized_operations=CLUSTER_OPERATIONS if wants_cluster else NOT_ASKED,
    )
    return encode_response(context.api_key, context.api_version, response)


def _is_malformed(asked: MetadataRequestTopic, api_version: int) -> bool:
    if api_version >= _FIRST_VERSION_WITH_IDS:
        return False
    return asked.name is None or asked.topic_id is not None


def _look_up_ids(asked: Iterable[MetadataRequestTopic], broker: BrokerState) -> _Found:
    found: list[Topic | _Refusal] = []
    for topic_id in dict.fromkeys(topic.topic_id for topic in asked):
        if topic_id is None:
            continue
        try:
            found.append(broker.topics.get_by_id(topic_id))
        except UnknownTopicIdError as error:
            found.append(_Refusal(code_for(error), None, topic_id))
    return found


def _look_up_names(names: Iterable[str], broker: BrokerState) -> _Found:
    return [
        broker.topics.get(name) if broker.topics.has(name) else _Refusal(_why_missing(name), name)
        for name in names
    ]


async def _create_and_answer(
    names: Sequence[str], request: MetadataRequest, broker: BrokerState, context: RequestContext
) -> Encoded:
    found = await broker.topics.changes.make(partial(_create, names, broker))
    answer = _answer(found, request, broker, context)
    return answer if isinstance(answer, Encoded) else await answer


async def _create(names: Sequence[str], broker: BrokerState) -> _Found:
    """Create what is missing and can be created, in one commit; return what there is then."""
    planned: dict[str, Topic] = {}
    found: dict[str, Topic | _Refusal] = {}
    async for name in in_slices(names):
        try:
            found[name] = broker.topics.get(name)
        except UnknownTopicError:
            try:
                found[name] = planned[name] = broker.topics.plan_by_default(name)
            except HeadraceError as error:
                found[name] = _Refusal(code_for(error), name)
    try:
        await broker.topics.add(list(planned.values()))
    except HeadraceError as error:
        found |= {name: _Refusal(code_for(error), name) for name in planned}
    return list(found.values())


def _why_missing(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except HeadraceError as error:
        return code_for(error)
    return ErrorCode.unknown_topic_or_partition
