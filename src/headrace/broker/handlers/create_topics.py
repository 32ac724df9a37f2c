"""CreateTopics (19).

v4  -1 partitions or replicas mean the broker's default (KIP-464)
v5  flexible encoding; the answer has the new topic's size and configs (KIP-525)
v7  the answer has the topic id (KIP-516)

The timeout is not needed: a topic is there before the answer is written.
"""

from collections import Counter
from functools import cache, partial

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i16, i32

from headrace.broker.error_codes import code_for
from headrace.broker.errors import InvalidReplicaAssignmentError, InvalidReplicationFactorError
from headrace.broker.handlers.replica_assignment import check_assignments
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError, InvalidConfigError, RequestError
from headrace.model import Topic

_DEFAULT = -1
_FIRST_VERSION_WITH_CONFIGS = 5


async def handle(
    request: CreateTopicsRequest, broker: BrokerState, context: RequestContext
) -> CreateTopicsResponse:
    """Create what can be created, in one commit, and say of each topic what became of it."""
    return await broker.topics.changes.make(partial(_create, request, broker, context.api_version))


async def _create(
    request: CreateTopicsRequest, broker: BrokerState, api_version: int
) -> CreateTopicsResponse:
    times_asked = Counter(topic.name for topic in request.topics)
    planned: dict[str, Topic] = {}
    results: dict[str, CreatableTopicResult] = {}
    # Topics made together mostly have the same configs, and describing them is what takes time.
    describe = cache(partial(_describe_configs, broker=broker))
    has_configs = api_version >= _FIRST_VERSION_WITH_CONFIGS
    async for asked in in_slices(request.topics):
        try:
            if times_asked[asked.name] > 1:
                raise RequestError("Duplicate topic name.")
            topic = planned[asked.name] = _plan(asked, broker)
            configs = describe(tuple(topic.configs.items())) if has_configs else ()
            results[asked.name] = _success(asked, topic, configs)
        except HeadraceError as error:
            results[asked.name] = _failure(asked, error)
    if not request.validate_only:
        try:
            await broker.topics.add(list(planned.values()))
        except HeadraceError as error:
            for asked in request.topics:
                if asked.name in planned:
                    results[asked.name] = _failure(asked, error)
    return CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=tuple(results.values()))


def _plan(asked: CreatableTopic, broker: BrokerState) -> Topic:
    nulls = [config.name for config in asked.configs if config.value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise InvalidConfigError(nulls[0], None, message)
    configs = {config.name: config.value for config in asked.configs if config.value is not None}
    if asked.assignments:
        return broker.topics.plan(asked.name, _assigned_partitions(asked, broker), configs)
    if asked.num_partitions != _DEFAULT:
        topic = broker.topics.plan(asked.name, asked.num_partitions, configs)
    else:
        default_count = broker.settings.int("num.partitions")
        topic = broker.topics.plan(asked.name, default_count, configs)
    _check_replication_factor(asked.replication_factor, broker)
    return topic


def _assigned_partitions(asked: CreatableTopic, broker: BrokerState) -> int:
    if asked.replication_factor != _DEFAULT:
        raise RequestError(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if asked.num_partitions != _DEFAULT:
        raise RequestError(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    check_assignments([row.broker_ids for row in asked.assignments], broker.node_id)
    partitions = Counter(row.partition_index for row in asked.assignments)
    for partition, times in partitions.items():
        if times > 1:
            raise InvalidReplicaAssignmentError(
                f"Found multiple manual partition assignments for partition {partition}"
            )
    if set(partitions) != set(range(len(partitions))):
        raise InvalidReplicaAssignmentError(
            "partitions should be a consecutive 0-based integer sequence"
        )
    return len(partitions)


def _check_replication_factor(factor: int, broker: BrokerState) -> None:
    if factor == _DEFAULT:
        factor = broker.settings.int("default.replication.factor")
    if factor < 1:
        raise InvalidReplicationFactorError(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if factor > 1:
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {factor} time(s): The target replication factor "
            f"of {factor} cannot be reached because only 1 broker(s) are registered."
        )


def _success(
    asked: CreatableTopic, topic: Topic, configs: tuple[CreatableTopicConfigs, ...]
) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=asked.name,
        topic_id=topic.topic_id,
        error_code=ErrorCode.none,
        error_message=None,
        num_partitions=i32(topic.partition_count),
        replication_factor=i16(1),
        configs=configs,
    )


def _describe_configs(
    configs: tuple[tuple[str, str], ...], broker: BrokerState
) -> tuple[CreatableTopicConfigs, ...]:
    return tuple(
        CreatableTopicConfigs(
            name=entry.name,
            value=None if entry.is_sensitive else entry.value,
            read_only=entry.is_read_only,
            config_source=i8(entry.source),
            is_sensitive=entry.is_sensitive,
        )
        for entry in broker.settings.describe_topic(dict(configs))
    )


def _failure(asked: CreatableTopic, error: HeadraceError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=asked.name,
        topic_id=None,
        error_code=code_for(error),
        error_message=str(error),
        configs=(),
    )
