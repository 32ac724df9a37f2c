from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v3.request import FindCoordinatorRequest as OneKeyRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest

from headrace.broker.state import BrokerState

FIND = 10
GROUP, TRANSACTION, SHARE, UNKNOWN = 0, 1, 2, 7


@pytest.mark.parametrize("version", range(4))
def test_a_group_has_this_broker(ask: Any, version: int) -> None:
    answer = ask(FIND, OneKeyRequest(key="g", key_type=GROUP), version)

    assert answer.error_code == ErrorCode.none
    assert (answer.node_id, answer.host, answer.port) == (5, "broker.test", 9092)


@pytest.mark.parametrize("version", range(4, 7))
def test_several_groups_are_found_at_once(ask: Any, version: int) -> None:
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=("g", ""))
    answer = ask(FIND, request, version)

    assert [one.key for one in answer.coordinators] == ["g", ""]
    assert {one.error_code for one in answer.coordinators} == {ErrorCode.none}
    assert {(one.node_id, one.host, one.port) for one in answer.coordinators} == {
        (5, "broker.test", 9092)
    }


def test_the_groups_topic_is_made_at_the_first_question(ask: Any, broker: BrokerState) -> None:
    assert not broker.topics.has("__consumer_offsets")

    ask(FIND, FindCoordinatorRequest(key_type=GROUP, coordinator_keys=("g",)))

    topic = broker.topics.get("__consumer_offsets")
    assert topic.is_internal
    assert topic.partition_count == 50


@pytest.mark.parametrize(
    ("key_type", "key", "error_code"),
    [
        (TRANSACTION, "k", ErrorCode.coordinator_not_available),
        (SHARE, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.coordinator_not_available),
        (SHARE, "g", ErrorCode.invalid_request),
        (UNKNOWN, "k", ErrorCode.invalid_request),
    ],
)
def test_what_has_no_coordinator_here_is_told_so(
    ask: Any, broker: BrokerState, key_type: int, key: str, error_code: ErrorCode
) -> None:
    answer = ask(FIND, FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,)))

    (found,) = answer.coordinators
    assert (found.error_code, found.node_id, found.port) == (error_code, -1, -1)
    assert not broker.topics.has("__consumer_offsets")
