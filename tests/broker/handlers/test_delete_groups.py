from typing import Any

import pytest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.group_requests import COMMIT, DELETE, a_commit, a_stable_member

from headrace.broker.state import BrokerState


@pytest.mark.parametrize("version", range(3))
def test_only_empty_groups_go_each_with_its_result(
    ask: Any, broker: BrokerState, version: int
) -> None:
    at_once(broker.topics.create("t", 2, {}))
    a_stable_member(ask, "alive")
    for group_id in ("empty", ""):
        ask(COMMIT, a_commit(group_id), 9)

    names = ("alive", "empty", "", "none", "empty")
    results = ask(DELETE, DeleteGroupsRequest(groups_names=names), version).results

    assert {one.group_id: one.error_code for one in results} == {
        "alive": ErrorCode.non_empty_group,
        "empty": ErrorCode.none,
        "": ErrorCode.none,
        "none": ErrorCode.group_id_not_found,
    }
    assert len(results) == 4
    assert [group.group_id for group in broker.groups.coordinator.registry.groups()] == ["alive"]
