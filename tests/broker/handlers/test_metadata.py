from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10.request import MetadataRequest, MetadataRequestTopic
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

METADATA = 3


def a_request(*names: str | None, all_topics: bool = False, **fields: Any) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(topic_id=None, name=name) for name in names)
    defaults = {
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    return MetadataRequest(topics=None if all_topics else topics, **(defaults | fields))


def by_id(*ids: UUID) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids)
    return MetadataRequest(
        topics=topics,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


@pytest.mark.parametrize("version", VERSIONS["metadata"])
def test_every_version_names_the_broker_and_the_topic(
    version: int, broker: BrokerState, ask: Any
) -> None:
    topic = at_once(broker.topics.create("t", 3, {}))

    answer = ask(METADATA, a_request("t"), version)

    (node,) = answer.brokers
    assert (node.node_id, node.host, node.port) == (5, "broker.test", 9092)
    (described,) = answer.topics
    assert (described.error_code, described.name) == (ErrorCode.none, "t")
    assert [row.partition_index for row in described.partitions] == [0, 1, 2]
    assert {row.leader_id for row in described.partitions} == {5}
    assert {row.replica_nodes for row in described.partitions} == {(5,)}
    if version >= 1:
        assert (answer.controller_id, described.is_internal) == (5, False)
    if version >= 2:
        assert answer.cluster_id == broker.cluster_id
    if version >= 7:
        assert {row.leader_epoch for row in described.partitions} == {0}
    if version >= 10:
        assert described.topic_id == topic.topic_id


@pytest.mark.parametrize("version", [1, 5, 13])
def test_null_asks_for_all_topics_and_an_empty_list_for_none(
    version: int, broker: BrokerState, ask: Any
) -> None:
    at_once(broker.topics.create("b", 1, {}))
    at_once(broker.topics.create("a", 1, {}))

    everything = ask(METADATA, a_request(all_topics=True), version)
    nothing = ask(METADATA, a_request(), version)

    assert [topic.name for topic in everything.topics] == ["a", "b"]
    assert nothing.topics == ()


def test_in_version_0_an_empty_list_asks_for_all(broker: BrokerState, ask: Any) -> None:
    at_once(broker.topics.create("a", 1, {}))

    assert [topic.name for topic in ask(METADATA, a_request(), 0).topics] == ["a"]


def test_a_topic_is_created_when_asked_for_and_is_in_the_same_answer(
    broker: BrokerState, ask: Any
) -> None:
    answer = ask(METADATA, a_request("new", "other", allow_auto_topic_creation=True))

    assert [len(topic.partitions) for topic in answer.topics] == [2, 2]
    assert broker.topics.get("new").topic_id == answer.topics[0].topic_id


def test_before_version_4_topics_are_always_created(broker: BrokerState, ask: Any) -> None:
    ask(METADATA, a_request("new"), 3)

    assert broker.topics.get("new").partition_count == 2


def test_no_topic_is_created_when_the_client_or_the_operator_does_not_want_it(
    broker: BrokerState, ask: Any
) -> None:
    unwanted = ask(METADATA, a_request("new"))
    broker.settings.set_dynamic({"auto.create.topics.enable": "false"})
    forbidden = ask(METADATA, a_request("new", allow_auto_topic_creation=True))

    assert unwanted.topics[0].error_code == ErrorCode.unknown_topic_or_partition
    assert forbidden.topics[0].error_code == ErrorCode.unknown_topic_or_partition
    assert broker.topics.all() == []


@pytest.mark.parametrize("is_creating", [True, False])
@pytest.mark.parametrize("name", ["", "..", "a b", "x" * 250])
def test_a_bad_name_is_an_invalid_topic(name: str, is_creating: bool, ask: Any) -> None:
    answer = ask(METADATA, a_request(name, allow_auto_topic_creation=is_creating))

    assert answer.topics[0].error_code == ErrorCode.invalid_topic_exception
    assert answer.topics[0].name == name


def test_one_bad_name_does_not_keep_the_others_from_being_created(
    broker: BrokerState, ask: Any
) -> None:
    answer = ask(METADATA, a_request("a b", "good", allow_auto_topic_creation=True))

    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.invalid_topic_exception,
        ErrorCode.none,
    ]
    assert [topic.name for topic in broker.topics.all()] == ["good"]


def test_a_name_asked_for_twice_is_answered_once(broker: BrokerState, ask: Any) -> None:
    at_once(broker.topics.create("t", 1, {}))

    assert len(ask(METADATA, a_request("t", "t")).topics) == 1


def test_the_offsets_topic_comes_into_being_as_kafka_makes_it(
    broker: BrokerState, ask: Any
) -> None:
    request = a_request("__consumer_offsets", allow_auto_topic_creation=True)

    (topic,) = ask(METADATA, request).topics

    assert (len(topic.partitions), topic.is_internal) == (50, True)
    assert broker.topics.get("__consumer_offsets").configs["cleanup.policy"] == "compact"


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_id(version: int, broker: BrokerState, ask: Any) -> None:
    topic = at_once(broker.topics.create("t", 1, {}))
    unknown = UUID(int=99)

    known_row, unknown_row = ask(METADATA, by_id(topic.topic_id, unknown), version).topics

    assert (known_row.name, known_row.error_code) == ("t", ErrorCode.none)
    assert (unknown_row.name, unknown_row.topic_id) == (None, unknown)
    assert unknown_row.error_code == ErrorCode.unknown_topic_id


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_version_12(version: int, ask: Any) -> None:
    (topic,) = ask(METADATA, by_id(UUID(int=99)), version).topics

    assert topic.error_code == ErrorCode.invalid_request


@pytest.mark.parametrize("version", [8, 9, 10, 13])
def test_topic_operations_are_told_when_asked_for(
    version: int, broker: BrokerState, ask: Any
) -> None:
    at_once(broker.topics.create("t", 1, {}))
    request = a_request("t", include_topic_authorized_operations=True)

    asked = ask(METADATA, request, version).topics[0].topic_authorized_operations
    not_asked = ask(METADATA, a_request("t"), version).topics[0].topic_authorized_operations

    assert (asked, not_asked) == (3576, -(2**31))


@pytest.mark.parametrize(("is_asked", "operations"), [(True, 8096), (False, -(2**31))])
def test_cluster_operations_are_told_when_asked_for(
    is_asked: bool, operations: int, ask: Any
) -> None:
    answer = ask(METADATA, a_request(include_cluster_authorized_operations=is_asked), 10)

    assert answer.cluster_authorized_operations == operations


def test_describing_topics_opens_no_log(broker: BrokerState, ask: Any) -> None:
    at_once(broker.topics.create("t", 5000, {}))

    answer = ask(METADATA, a_request(all_topics=True))

    assert len(answer.topics[0].partitions) == 5000
    assert list(broker.topics.data_dir.glob("t-*")) == []
