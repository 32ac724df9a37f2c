from typing import Any

import pytest
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.errors import ErrorCode
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

DESCRIBE_CLUSTER = 60


def a_request(endpoint_type: int = 1, wants_operations: bool = False) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=wants_operations,
        endpoint_type=endpoint_type,
        include_fenced_brokers=False,
    )


@pytest.mark.parametrize("version", VERSIONS["describe_cluster"])
def test_every_version_names_the_one_broker(version: int, broker: BrokerState, ask: Any) -> None:
    answer = ask(DESCRIBE_CLUSTER, a_request(), version)

    assert (answer.error_code, answer.cluster_id) == (ErrorCode.none, broker.cluster_id)
    (node,) = answer.brokers
    assert (node.broker_id, node.host, node.port) == (5, "broker.test", 9092)
    assert answer.controller_id == 5
    assert answer.cluster_authorized_operations == -(2**31)


def test_operations_are_told_when_asked_for(ask: Any) -> None:
    answer = ask(DESCRIBE_CLUSTER, a_request(wants_operations=True))

    assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "error_code"),
    [(2, ErrorCode.mismatched_endpoint_type), (3, ErrorCode.unsupported_endpoint_type)],
)
def test_other_kinds_of_endpoints_are_refused(
    endpoint_type: int, error_code: ErrorCode, ask: Any
) -> None:
    answer = ask(DESCRIBE_CLUSTER, a_request(endpoint_type))

    assert answer.error_code == error_code
    assert answer.brokers == ()
