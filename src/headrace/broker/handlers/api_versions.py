"""ApiVersions (18).

v3  flexible; client software name and version in the request (KIP-511)
v4  feature ranges may start at 0 (KIP-1022); hidden from v3, which cannot read them

A version newer than these gets error 35 in the v0 layout with this API's own
range, so that the client can ask again.
"""

import re
from functools import cache
from typing import NamedTuple

from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i64

from headrace.broker.dispatch import APIS, Api
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.protocol.codec import Encoded, encode_response
from headrace.protocol.versions import API_VERSIONS

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class _Feature(NamedTuple):
    """What a client that asks for features may count on; the levels are Apache Kafka 4.3's."""

    name: str
    oldest: int
    newest: int
    finalized: int


# Those that are there in full. A client takes one that is not listed as absent: the Java producer
# keeps to transactions of the first version then, share and streams consumers say so.
_FEATURES = (
    _Feature("group.version", 0, 1, 1),  # 1: the new group protocol (KIP-848)
    _Feature("metadata.version", 7, 30, 30),  # 4.3-IV0
)
# Ranges from 0 on would make older clients fail (KIP-1022).
_RANGES_FROM_ZERO_SINCE = 4


def handle(
    request: ApiVersionsRequest, broker: BrokerState, context: RequestContext
) -> ApiVersionsResponse | Encoded:
    """List the APIs of the dispatch table."""
    if context.api_version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return _response(ErrorCode.invalid_request, [])
    return _everything(context.api_version)


@cache
def _everything(version: int) -> Encoded:
    response = _response(ErrorCode.none, list(APIS.values()), _FEATURES, version)
    return Encoded(encode_response(API_VERSIONS, version, response))


def unsupported() -> ApiVersionsResponse:
    """The answer to a version that is not served, to be written as v0."""
    return _response(ErrorCode.unsupported_version, [APIS[API_VERSIONS]])


def _response(
    error_code: ErrorCode, apis: list[Api], features: tuple[_Feature, ...] = (), version: int = 0
) -> ApiVersionsResponse:
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
        supported_features=tuple(
            SupportedFeatureKey(
                name=feature.name,
                min_version=i16(feature.oldest),
                max_version=i16(feature.newest),
            )
            for feature in features
            if feature.oldest > 0 or version >= _RANGES_FROM_ZERO_SINCE
        ),
        finalized_features_epoch=i64(0 if features else -1),
        finalized_features=tuple(
            FinalizedFeatureKey(
                name=feature.name,
                min_version_level=i16(feature.finalized),
                max_version_level=i16(feature.finalized),
            )
            for feature in features
        ),
    )
