"""AlterConfigs (33): a resource gets the overrides of the request and no others.

v2  flexible encoding
"""

from kio.schema.alter_configs.v2.request import AlterConfigsRequest, AlterConfigsResource
from kio.schema.alter_configs.v2.response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

from headrace.broker.config_changes import change_each, replace_configs
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext


async def handle(
    request: AlterConfigsRequest, broker: BrokerState, context: RequestContext
) -> AlterConfigsResponse:
    """Change each resource on its own."""

    async def change(resource: AlterConfigsResource) -> None:
        await replace_configs(
            broker,
            resource.resource_type,
            resource.resource_name,
            [(config.name, config.value) for config in resource.configs],
            validate_only=request.validate_only,
        )

    return AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=await change_each(request.resources, change, AlterConfigsResourceResponse),
    )
