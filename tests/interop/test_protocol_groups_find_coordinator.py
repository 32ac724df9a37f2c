"""FindCoordinator and the topic it brings about, on both engines."""

import uuid
from typing import Any

import pytest
from tests.interop.group_wire import (
    FIND_COORDINATOR,
    INVALID_REQUEST,
    NONE,
    ask,
    versions_of,
    wait_for,
)
from tests.interop.wire import DESCRIBE_CONFIGS, METADATA, Engine, WireClient

GROUP, TRANSACTION, SHARE = 0, 1, 2


def found(wire: WireClient, key: str, version: int, key_type: int = GROUP) -> Any:
    """Return the one coordinator, in whichever layout the version has."""
    if version < 4:
        return ask(wire, FIND_COORDINATOR, version, key=key, key_type=key_type)
    answer = ask(wire, FIND_COORDINATOR, version, key_type=key_type, coordinator_keys=[key])
    (coordinator,) = answer.coordinators
    assert coordinator.key == key
    return coordinator


@pytest.mark.parametrize("version", versions_of(FIND_COORDINATOR))
def test_the_only_broker_coordinates_every_group(
    wire: WireClient, engine: Engine, group_id: str, version: int
) -> None:
    answer = found(wire, group_id, version)

    host, _, port = engine.bootstrap.rpartition(":")
    assert (answer.error_code, answer.node_id) == (NONE, 1)
    assert (answer.host, answer.port) == (host, int(port))
    if version >= 1:
        assert answer.error_message == ("" if version >= 4 else "NONE")


def test_several_groups_are_asked_for_at_once(wire: WireClient, group_id: str) -> None:
    keys = [group_id, "another", group_id, ""]

    answer = ask(wire, FIND_COORDINATOR, 6, key_type=GROUP, coordinator_keys=keys)
    nothing = ask(wire, FIND_COORDINATOR, 6, key_type=GROUP, coordinator_keys=[])

    assert [each.key for each in answer.coordinators] == keys
    assert {each.error_code for each in answer.coordinators} == {NONE}
    assert nothing.coordinators == ()


@pytest.mark.parametrize("version", versions_of(FIND_COORDINATOR, 1))
def test_a_kind_of_coordinator_that_is_not_there_is_an_invalid_request(
    wire: WireClient, version: int
) -> None:
    answer = found(wire, "whatever", version, key_type=5)

    assert (answer.error_code, answer.node_id) == (INVALID_REQUEST, -1)
    assert (answer.host, answer.port) == ("", -1)


def test_share_coordinators_are_found_by_group_topic_and_partition(wire: WireClient) -> None:
    key = f"g:{uuid.uuid4()}:0"

    malformed, early = found(wire, "g", 6, SHARE), found(wire, key, 5, SHARE)

    assert malformed.error_code == early.error_code == INVALID_REQUEST


def test_groups_are_kept_in_an_internal_topic_of_50_partitions(
    wire: WireClient, group_id: str
) -> None:
    topics = [{"topic_id": None, "name": "__consumer_offsets"}]
    fields = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}

    (topic,) = wire.call(METADATA, 13, topics=topics, **fields).topics

    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (NONE, True, 50)


def test_the_topic_of_groups_is_compacted(wire: WireClient, group_id: str) -> None:
    names = ["cleanup.policy", "segment.bytes", "compression.type"]
    resource = {
        "resource_type": 2,
        "resource_name": "__consumer_offsets",
        "configuration_keys": names,
    }

    answer = wire.call(
        DESCRIBE_CONFIGS,
        4,
        resources=[resource],
        include_synonyms=False,
        include_documentation=False,
    )

    told = {config.name: config.value for config in answer.results[0].configs}
    assert told == {
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
        "compression.type": "producer",
    }


def test_transactions_have_a_coordinator_too(wire: WireClient, engine: Engine) -> None:
    if engine.name == "headrace":
        pytest.skip("headrace has no transactions yet")
    wait_for(lambda: found(wire, "some-transaction", 6, TRANSACTION).error_code == NONE)
