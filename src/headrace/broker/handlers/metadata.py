"""Metadata (3), v0-13.

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

from collections.abc import Iterable
from functools import lru_cache

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v10.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import Broker, RequestContext
from headrace.broker.topic_names import INTERNAL_TOPICS, check_topic_name
from headrace.errors import HeadraceError, UnknownTopicError, UnknownTopicIdError
from headrace.model import Topic

VERSIONS = range(0, 14)
# `dispatch` has this request seen as v10, the newest that still has the cluster's authorized
# operations: later versions only dropped fields, but for an error code that is never set here.

_FIRST_VERSION_WITH_IDS = 12


def handle(request: MetadataRequest, broker: Broker, context: RequestContext) -> MetadataResponse:
    """Describe the cluster, which is this broker, and the topics asked for."""
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    if request.topics is None or (context.api_version == 0 and not request.topics):
        topics = [_describe(topic, broker, operations) for topic in broker.topics.all()]
    elif any(_is_malformed(asked, context.api_version) for asked in request.topics):
        topics = [_refusal(asked.name or "", ErrorCode.invalid_request) for asked in request.topics]
    elif any(asked.topic_id is not None for asked in request.topics):
        topics = _look_up_ids(request.topics, broker, operations)
    else:
        names = dict.fromkeys(asked.name or "" for asked in request.topics)
        is_creating = request.allow_auto_topic_creation and broker.settings.bool(
            "auto.create.topics.enable"
        )
        topics = _look_up_names(names, is_creating, broker, operations)
    wants_cluster = request.include_cluster_authorized_operations
    return MetadataResponse(
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
        topics=tuple(topics),
        cluster_authorized_operations=CLUSTER_OPERATIONS if wants_cluster else NOT_ASKED,
    )


def _is_malformed(asked: MetadataRequestTopic, api_version: int) -> bool:
    if api_version >= _FIRST_VERSION_WITH_IDS:
        return False
    return asked.name is None or asked.topic_id is not None


def _look_up_ids(
    asked: Iterable[MetadataRequestTopic], broker: Broker, operations: i32
) -> list[MetadataResponseTopic]:
    found = []
    for topic_id in dict.fromkeys(topic.topic_id for topic in asked):
        if topic_id is None:
            continue
        try:
            found.append(_describe(broker.topics.get_by_id(topic_id), broker, operations))
        except UnknownTopicIdError as error:
            found.append(
                MetadataResponseTopic(
                    error_code=code_for(error),
                    name=None,  # type: ignore[arg-type]  # null from v12 on
                    topic_id=topic_id,
                    partitions=(),
                )
            )
    return found


def _look_up_names(
    names: Iterable[str], is_creating: bool, broker: Broker, operations: i32
) -> list[MetadataResponseTopic]:
    existing: dict[str, Topic] = {}
    missing: list[str] = []
    refused: dict[str, ErrorCode] = {}
    for name in names:
        try:
            existing[name] = broker.topics.get(name)
        except UnknownTopicError:
            missing.append(name)
    if missing and is_creating:
        created, refused = _create(missing, broker)
        existing |= created
    elif missing:
        refused = {name: _why_missing(name) for name in missing}
    return [
        _refusal(name, refused[name], operations)
        if name in refused
        else _describe(existing[name], broker, operations)
        for name in names
    ]


def _create(names: Iterable[str], broker: Broker) -> tuple[dict[str, Topic], dict[str, ErrorCode]]:
    """Create what can be created, in one commit; return those topics and what became of others."""
    planned: dict[str, Topic] = {}
    refused: dict[str, ErrorCode] = {}
    for name in names:
        try:
            planned[name] = broker.topics.plan_by_default(name)
        except HeadraceError as error:
            refused[name] = code_for(error)
    try:
        broker.topics.add(list(planned.values()))
    except HeadraceError as error:
        return {}, refused | dict.fromkeys(planned, code_for(error))
    return planned, refused


def _why_missing(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except HeadraceError as error:
        return code_for(error)
    return ErrorCode.unknown_topic_or_partition


def _describe(topic: Topic, broker: Broker, operations: i32) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=_partitions(broker.node_id, topic.partition_count, topic.leader_epoch),
        topic_authorized_operations=operations,
    )


def _refusal(
    name: str, error_code: ErrorCode, operations: i32 = NOT_ASKED
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error_code,
        name=TopicName(name),
        topic_id=None,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )


@lru_cache(maxsize=64)
def _partitions(node_id: int, count: int, epoch: int) -> tuple[MetadataResponsePartition, ...]:
    """Topics of the same size look the same: this broker leads them and is their only replica."""
    leader, leader_epoch = BrokerId(node_id), i32(epoch)
    return tuple(
        MetadataResponsePartition(
            error_code=ErrorCode.none,
            partition_index=i32(partition),
            leader_id=leader,
            leader_epoch=leader_epoch,
            replica_nodes=(leader,),
            isr_nodes=(leader,),
            offline_replicas=(),
        )
        for partition in range(count)
    )
