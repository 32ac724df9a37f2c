"""DescribeConfigs (32).

v1  synonyms and sources instead of "is it a default"
v3  types, and documentation on request (KIP-569)
v4  flexible encoding
"""

from collections.abc import Hashable

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from headrace.broker import loggers
from headrace.broker.config_changes import ResourceType
from headrace.broker.error_codes import code_for
from headrace.broker.errors import UnknownTopicError
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.topic_names import check_topic_name
from headrace.broker.turns import in_slices
from headrace.errors import HeadraceError, RequestError
from headrace.settings.catalogue import ConfigType
from headrace.settings.describe import ConfigEntry
from headrace.settings.layers import ConfigSource


async def handle(
    request: DescribeConfigsRequest, broker: BrokerState, context: RequestContext
) -> DescribeConfigsResponse:
    """Answer for each resource on its own."""
    # Thousands of topics have the same few configs: these are made once, and shared.
    made: _Made = {}
    results = [
        _describe(resource, request, broker, made)
        async for resource in in_slices(request.resources)
    ]
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=tuple(results))


_Made = dict[Hashable, tuple[DescribeConfigsResourceResult, ...]]


def _describe(
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    broker: BrokerState,
    made: _Made,
) -> DescribeConfigsResult:
    error_code, message = ErrorCode.none, ""
    configs: tuple[DescribeConfigsResourceResult, ...] = ()
    # Kafka takes an empty list for "all" too.
    wanted = frozenset(resource.configuration_keys or ())
    try:
        key = (resource.resource_type, _sameness(resource, broker), wanted)
        known = made.get(key)
        if known is None:
            entries = _entries(resource.resource_type, resource.resource_name, broker)
            known = made[key] = tuple(
                _result(entry, request) for entry in entries if not wanted or entry.name in wanted
            )
        configs = known
    except HeadraceError as error:
        error_code = code_for(error)
        message = "" if isinstance(error, UnknownTopicError) else str(error)
    return DescribeConfigsResult(
        error_code=error_code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _sameness(resource: DescribeConfigsResource, broker: BrokerState) -> Hashable:
    """What the configs of a resource depend on, besides its type."""
    name = resource.resource_name
    if int(resource.resource_type) == ResourceType.TOPIC and broker.topics.has(name):
        return frozenset(broker.topics.get(name).configs.items())
    return name


def _entries(resource_type: int, name: str, broker: BrokerState) -> list[ConfigEntry]:
    settings = broker.settings
    match resource_type:
        case ResourceType.TOPIC:
            check_topic_name(name)
            return settings.describe_topic(broker.topics.get(name).configs)
        case ResourceType.BROKER:
            if not name:
                return settings.describe_default()
            _check_broker_id(name, broker.node_id, f"{broker.node_id} or empty string,")
            return settings.describe_broker()
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise RequestError("Broker id must not be empty")
            _check_broker_id(name, broker.node_id, str(broker.node_id))
            return _logger_entries()
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise RequestError("Client metrics subscription name must not be empty")
            return settings.describe_client_metrics(
                settings.dynamic_configs.client_metrics.get(name, {})
            )
        case ResourceType.GROUP:
            if not name:
                raise RequestError("Group name must not be empty")
            return settings.describe_group(settings.dynamic_configs.groups.get(name, {}))
        case _:
            raise RequestError(f"Unknown resource type {resource_type}")


def _check_broker_id(name: str, node_id: int, expected: str) -> None:
    try:
        broker_id = int(name)
    except ValueError:
        raise RequestError(f"Broker id must be an integer, but it is: {name}") from None
    if broker_id != node_id:
        raise RequestError(f"Unexpected broker id, expected {expected} but received {broker_id}")


def _logger_entries() -> list[ConfigEntry]:
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return [
        ConfigEntry(name, level, source, ConfigType.UNKNOWN, False, False, (), None)
        for name, level in loggers.levels().items()
    ]


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=i8(entry.source),
        is_sensitive=entry.is_sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=value, source=i8(source))
            for name, value, source in (entry.synonyms if request.include_synonyms else ())
        ),
        config_type=i8(entry.type),
        documentation=entry.documentation if request.include_documentation else None,
    )
