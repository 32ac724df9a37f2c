"""DescribeCluster (60).

v1  endpoint_type in the request and the answer (KIP-919)
v2  fenced brokers on request (KIP-1073)
"""

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32

from headrace.broker.handlers.operations import CLUSTER_OPERATIONS, NOT_ASKED
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext

BROKERS, CONTROLLERS = 1, 2


def handle(
    request: DescribeClusterRequest, broker: BrokerState, context: RequestContext
) -> DescribeClusterResponse:
    """Name the one broker there is."""
    if request.endpoint_type == CONTROLLERS:
        return _refusal(
            ErrorCode.mismatched_endpoint_type,
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return _refusal(
            ErrorCode.unsupported_endpoint_type,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        cluster_id=broker.cluster_id,
        controller_id=BrokerId(broker.node_id),
        brokers=(
            DescribeClusterBroker(
                broker_id=BrokerId(broker.node_id),
                host=broker.advertised_host,
                port=i32(broker.advertised_port),
                rack=broker.settings.optional_str("broker.rack"),
                is_fenced=False,
            ),
        ),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _refusal(error_code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=error_code,
        error_message=message,
        endpoint_type=i8(BROKERS),
        cluster_id="",
        brokers=(),
    )
