from typing import Any

import pytest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.group_requests import (
    CONSUMER_HEARTBEAT,
    DESCRIBE,
    HAS_T,
    READS_T,
    a_beat,
    a_stable_member,
)

from headrace.broker.state import BrokerState

NOT_ASKED = -(2**31)
ALL_OF_A_GROUP = 3400  # as Kafka 4.3.1 answers without an authorizer


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_shown_with_its_members(ask: Any, version: int) -> None:
    joined = a_stable_member(ask)
    request = DescribeGroupsRequest(groups=("g",), include_authorized_operations=True)

    (group,) = ask(DESCRIBE, request, version).groups

    assert (group.error_code, group.group_id) == (ErrorCode.none, "g")
    assert (group.group_state, group.protocol_type) == ("Stable", "consumer")
    assert group.protocol_data == "range"
    (member,) = group.members
    assert (member.member_id, member.client_id) == (joined.member_id, "client")
    assert member.client_host == "/127.0.0.1"
    assert (member.member_metadata, member.member_assignment) == (READS_T, HAS_T)
    if version >= 3:
        assert group.authorized_operations == ALL_OF_A_GROUP


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_not_there_is_dead(ask: Any, version: int) -> None:
    request = DescribeGroupsRequest(groups=("none",), include_authorized_operations=False)

    (group,) = ask(DESCRIBE, request, version).groups

    assert (group.group_state, group.members) == ("Dead", ())
    if version >= 6:
        assert group.error_code == ErrorCode.group_id_not_found
        assert group.error_message == "Group none not found."
    else:
        assert group.error_code == ErrorCode.none
    if version >= 3:
        assert group.authorized_operations == NOT_ASKED


def test_a_group_of_the_new_protocol_is_not_shown_here(ask: Any, broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))
    ask(CONSUMER_HEARTBEAT, a_beat("new"))
    request = DescribeGroupsRequest(groups=("new",), include_authorized_operations=False)

    (group,) = ask(DESCRIBE, request).groups

    assert group.error_code == ErrorCode.group_id_not_found
    assert group.error_message == "Group new is not a classic group."
