"""ListConfigResources (74): which resources have configs.

v0  only metrics subscriptions, by name (KIP-1000, as ListClientMetricsResources)
v1  all kinds, or those asked for (KIP-1142)
"""

from kio.schema.errors import ErrorCode
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.list_config_resources.v1.response import (
    ConfigResource,
    ListConfigResourcesResponse,
)
from kio.static.primitive import i8

from headrace.broker.config_changes import ResourceType
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices


async def handle(
    request: ListConfigResourcesRequest, broker: BrokerState, context: RequestContext
) -> ListConfigResourcesResponse:
    """List the resources of each kind asked for; none named means all kinds."""
    wanted: set[int] = set(request.resource_types) or set(ResourceType)
    if context.api_version == 0:
        wanted = {ResourceType.CLIENT_METRICS}
    if not wanted <= set(ResourceType):
        return await _response(ErrorCode.unsupported_version, [])
    dynamic = broker.settings.dynamic_configs
    node_names = [str(broker.node_id)]
    names = {
        ResourceType.GROUP: sorted(dynamic.groups),
        ResourceType.CLIENT_METRICS: sorted(dynamic.client_metrics),
        ResourceType.BROKER_LOGGER: node_names,
        ResourceType.BROKER: node_names,
        ResourceType.TOPIC: [topic.name for topic in broker.topics.all()],
    }
    return await _response(
        ErrorCode.none,
        [(kind, name) for kind, listed in names.items() if kind in wanted for name in listed],
    )


async def _response(
    error_code: ErrorCode, resources: list[tuple[ResourceType, str]]
) -> ListConfigResourcesResponse:
    listed = [
        ConfigResource(resource_name=name, resource_type=i8(kind))
        async for kind, name in in_slices(resources)
    ]
    return ListConfigResourcesResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, config_resources=tuple(listed)
    )
