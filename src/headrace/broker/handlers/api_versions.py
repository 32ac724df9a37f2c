"""ApiVersions (18), v0-4.

v3  flexible; client software name and version in the request (KIP-511)
v4  feature ranges may start at 0 (KIP-1022); hidden from v3, which cannot read them

A version newer than these gets error 35 in the v0 layout with this API's own
range, so that the client can ask again.
"""

import re

from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i64

from headrace.broker.dispatch import API_VERSIONS, APIS, Api
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import Broker, RequestContext

KEY = API_VERSIONS
VERSIONS = range(0, 5)
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Apache Kafka 4.3: what a client that asks for features may count on.
_METADATA_VERSION = "metadata.version"
_METADATA_OLDEST, _METADATA_LEVEL = 7, 30


def handle(
    request: ApiVersionsRequest, broker: Broker, context: RequestContext
) -> ApiVersionsResponse:
    """List the APIs of the dispatch table."""
    if context.api_version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return _response(ErrorCode.invalid_request, [])
    return _response(ErrorCode.none, list(APIS.values()), has_features=True)


def unsupported() -> ApiVersionsResponse:
    """The answer to a version that is not served, to be written as v0."""
    return _response(ErrorCode.unsupported_version, [APIS[KEY]])


def _response(
    error_code: ErrorCode, apis: list[Api], *, has_features: bool = False
) -> ApiVersionsResponse:
    supported: tuple[SupportedFeatureKey, ...] = ()
    finalized: tuple[FinalizedFeatureKey, ...] = ()
    if has_features:
        supported = (
            SupportedFeatureKey(
                name=_METADATA_VERSION,
                min_version=i16(_METADATA_OLDEST),
                max_version=i16(_METADATA_LEVEL),
            ),
        )
        finalized = (
            FinalizedFeatureKey(
                name=_METADATA_VERSION,
                min_version_level=i16(_METADATA_LEVEL),
                max_version_level=i16(_METADATA_LEVEL),
            ),
        )
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=tuple(
            ApiVersion(
                api_key=i16(api.key),
                min_version=i16(api.versions[0]),
                max_version=i16(api.versions[-1]),
            )
            for api in apis
        ),
        throttle_time=NO_THROTTLE,
        supported_features=supported,
        finalized_features_epoch=i64(0 if has_features else -1),
        finalized_features=finalized,
    )
