"""IncrementalAlterConfigs (44): single overrides of a resource are set, removed or edited.

v1  flexible encoding
"""

from kio.schema.incremental_alter_configs.v1.request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from headrace.broker.config_changes import Edit, change_each, edit_configs
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext


async def handle(
    request: IncrementalAlterConfigsRequest, broker: BrokerState, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Change each resource on its own."""

    async def change(resource: AlterConfigsResource) -> None:
        edits = [
            Edit(config.name, config.config_operation, config.value) for config in resource.configs
        ]
        await edit_configs(
            broker,
            resource.resource_type,
            resource.resource_name,
            edits,
            validate_only=request.validate_only,
        )

    return IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=await change_each(request.resources, change, AlterConfigsResourceResponse),
    )
