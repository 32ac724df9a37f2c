from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.static.primitive import i8
from tests.at_once import at_once

from headrace.broker.state import BrokerState

LIST_CONFIG_RESOURCES = 74
EVERYTHING = [(32, "g"), (16, "m"), (8, "5"), (4, "5"), (2, "t"), (2, "u")]

Ask = Callable[..., Any]


def a_request(*kinds: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=tuple(i8(kind) for kind in kinds))


@pytest.fixture(autouse=True)
def resources(broker: BrokerState) -> None:
    at_once(broker.topics.create("u", 1, {}))
    at_once(broker.topics.create("t", 1, {}))
    broker.settings.set_dynamic(
        {"group:share.session.timeout.ms:g": "46000", "client-metrics:interval.ms:m": "5000"}
    )


@pytest.mark.parametrize(
    ("kinds", "listed"),
    [
        ((), EVERYTHING),
        ((2,), [(2, "t"), (2, "u")]),
        ((16, 32), [(32, "g"), (16, "m")]),
        ((8,), [(8, "5")]),
    ],
)
def test_the_kinds_asked_for_are_listed_and_all_when_none_is_named(
    ask: Ask, kinds: tuple[int, ...], listed: list[tuple[int, str]]
) -> None:
    response = ask(LIST_CONFIG_RESOURCES, a_request(*kinds))

    found = [(each.resource_type, each.resource_name) for each in response.config_resources]
    assert (response.error_code, found) == (0, listed)


@pytest.mark.parametrize("kinds", [(99,), (0,), (2, 99)])
def test_an_unknown_kind_is_an_unsupported_version(ask: Ask, kinds: tuple[int, ...]) -> None:
    response = ask(LIST_CONFIG_RESOURCES, a_request(*kinds))

    assert (response.error_code, response.config_resources) == (35, ())


def test_the_first_version_lists_only_metrics_subscriptions(ask: Ask) -> None:
    response = ask(LIST_CONFIG_RESOURCES, a_request(), 0)

    assert [each.resource_name for each in response.config_resources] == ["m"]
