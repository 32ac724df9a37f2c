from typing import Any

import pytest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from tests.at_once import at_once
from tests.broker.handlers.group_requests import (
    COMMIT,
    CONSUMER_HEARTBEAT,
    LIST,
    a_beat,
    a_commit,
    a_stable_member,
)

from headrace.broker.state import BrokerState


@pytest.fixture
def three_groups(ask: Any, broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))
    a_stable_member(ask, "classic")
    ask(CONSUMER_HEARTBEAT, a_beat("new"))
    ask(COMMIT, a_commit("simple"), 9)


@pytest.mark.usefixtures("three_groups")
@pytest.mark.parametrize("version", range(6))
def test_all_groups_are_listed(ask: Any, version: int) -> None:
    groups = {one.group_id: one for one in ask(LIST, ListGroupsRequest(), version).groups}

    assert {name: one.protocol_type for name, one in groups.items()} == {
        "classic": "consumer",
        "new": "consumer",
        "simple": "",
    }
    if version >= 4:
        assert groups["classic"].group_state == groups["new"].group_state == "Stable"
        assert groups["simple"].group_state == "Empty"
    if version >= 5:
        types = {name: one.group_type for name, one in groups.items()}
        assert types == {"classic": "classic", "new": "consumer", "simple": "classic"}


@pytest.mark.usefixtures("three_groups")
@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"states_filter": ("empty",)}, {"simple"}),
        ({"states_filter": ("Stable", "Dead")}, {"classic", "new"}),
        ({"states_filter": ("bogus",)}, set()),
        ({"types_filter": ("Consumer",)}, {"new"}),
        ({"types_filter": ("classic",), "states_filter": ("Stable",)}, {"classic"}),
        ({"types_filter": ("bogus",)}, set()),
    ],
)
def test_filters_leave_out_the_others(ask: Any, filters: Any, names: set[str]) -> None:
    assert {one.group_id for one in ask(LIST, ListGroupsRequest(**filters)).groups} == names


def test_without_groups_the_list_is_empty(ask: Any, broker: BrokerState) -> None:
    assert ask(LIST, ListGroupsRequest()).groups == ()
    assert not broker.topics.has("__consumer_offsets")
