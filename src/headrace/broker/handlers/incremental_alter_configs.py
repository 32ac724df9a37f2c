"""IncrementalAlterConfigs (44), v0-1: single overrides of a resource are set, removed or edited.

v1  flexible encoding
"""

from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from headrace.broker.config_changes import Edit, edit_configs, explain, named_twice
from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import Broker, RequestContext
from headrace.errors import HeadraceError, RequestError

VERSIONS = range(0, 2)


async def handle(
    request: IncrementalAlterConfigsRequest, broker: Broker, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Change each resource on its own."""
    twice = named_twice((each.resource_type, each.resource_name) for each in request.resources)
    return IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(
            [
                await _alter(
                    resource,
                    broker,
                    validate_only=request.validate_only,
                    is_twice=(resource.resource_type, resource.resource_name) in twice,
                )
                for resource in request.resources
            ]
        ),
    )


async def _alter(
    resource: AlterConfigsResource, broker: Broker, *, validate_only: bool, is_twice: bool
) -> AlterConfigsResourceResponse:
    error_code, message = ErrorCode.none, None
    try:
        if is_twice:
            raise RequestError("Each resource must appear at most once.")
        await edit_configs(
            broker,
            resource.resource_type,
            resource.resource_name,
            [
                Edit(config.name, config.config_operation, config.value)
                for config in resource.configs
            ],
            validate_only=validate_only,
        )
    except HeadraceError as error:
        error_code, message = code_for(error), explain(error)
    return AlterConfigsResourceResponse(
        error_code=error_code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
