"""AlterConfigs (33), v0-2: a resource gets the overrides of the request and no others.

v2  flexible encoding
"""

from kio.schema.alter_configs.v2.request import AlterConfigsRequest, AlterConfigsResource
from kio.schema.alter_configs.v2.response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kio.schema.errors import ErrorCode

from headrace.broker.config_changes import explain, named_twice, replace_configs
from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import Broker, RequestContext
from headrace.errors import HeadraceError, RequestError

VERSIONS = range(0, 3)


async def handle(
    request: AlterConfigsRequest, broker: Broker, context: RequestContext
) -> AlterConfigsResponse:
    """Change each resource on its own."""
    twice = named_twice((each.resource_type, each.resource_name) for each in request.resources)
    return AlterConfigsResponse(
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
        await replace_configs(
            broker,
            resource.resource_type,
            resource.resource_name,
            [(config.name, config.value) for config in resource.configs],
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
