from typing import Any

import pytest
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.partition_limits import MAX_PARTITIONS_PER_TOPIC
from headrace.broker.state import BrokerState

CREATE_TOPICS = 19


def a_topic(
    name: str = "t",
    partitions: int = 1,
    replicas: int = 1,
    assignments: dict[int, tuple[int, ...]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ),
    )


def a_request(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


@pytest.mark.parametrize("version", VERSIONS["create_topics"])
def test_every_version_creates_a_topic(version: int, broker: BrokerState, ask: Any) -> None:
    asked = a_topic(partitions=4, retention_ms="1000")

    (result,) = ask(CREATE_TOPICS, a_request(asked), version).topics

    topic = broker.topics.get("t")
    assert (topic.partition_count, topic.configs) == (4, {"retention.ms": "1000"})
    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.none, None)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (4, 1)
        assert result.topic_config_error_code == 0
        values = {config.name: config.value for config in result.configs}
        assert (values["retention.ms"], values["cleanup.policy"]) == ("1000", "delete")
        assert len(values) >= 33
    if version >= 7:
        assert result.topic_id == topic.topic_id


def test_minus_one_means_the_brokers_defaults(broker: BrokerState, ask: Any) -> None:
    (result,) = ask(CREATE_TOPICS, a_request(a_topic(partitions=-1, replicas=-1))).topics

    assert result.error_code == ErrorCode.none
    assert broker.topics.get("t").partition_count == 2


def test_validate_only_creates_nothing(broker: BrokerState, ask: Any) -> None:
    request = a_request(a_topic(), a_topic("bad name"), validate_only=True)

    good, bad = ask(CREATE_TOPICS, request).topics

    assert (good.error_code, good.num_partitions) == (ErrorCode.none, 1)
    assert bad.error_code == ErrorCode.invalid_topic_exception
    assert broker.topics.all() == []


def test_manual_assignments_to_this_broker_set_the_partition_count(
    broker: BrokerState, ask: Any
) -> None:
    asked = a_topic(partitions=-1, replicas=-1, assignments={1: (5,), 0: (5,)})

    (result,) = ask(CREATE_TOPICS, a_request(asked)).topics

    assert result.error_code == ErrorCode.none
    assert broker.topics.get("t").partition_count == 2


@pytest.mark.parametrize(
    ("asked", "error_code", "message"),
    [
        (a_topic(""), ErrorCode.invalid_topic_exception, "the empty string is not allowed"),
        (a_topic("taken"), ErrorCode.topic_already_exists, "Topic 'taken' already exists."),
        (
            a_topic("with_dot"),
            ErrorCode.invalid_topic_exception,
            "Topic 'with_dot' collides with existing topic: with.dot",
        ),
        (
            a_topic("__cluster_metadata"),
            ErrorCode.invalid_request,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (a_topic(partitions=0), ErrorCode.invalid_partitions, "invalid non-positive value"),
        (a_topic(partitions=-2), ErrorCode.invalid_partitions, "invalid non-positive value"),
        (
            a_topic(partitions=MAX_PARTITIONS_PER_TOPIC + 1),
            ErrorCode.invalid_partitions,
            "at most 10000",
        ),
        (
            a_topic(replicas=3),
            ErrorCode.invalid_replication_factor,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 "
            "cannot be reached because only 1 broker(s) are registered.",
        ),
        (a_topic(replicas=0), ErrorCode.invalid_replication_factor, "must be larger than 0"),
        (
            a_topic(no_such="1"),
            ErrorCode.invalid_config,
            "Unknown topic config name: no.such",
        ),
        (
            a_topic(segment_bytes="1000"),
            ErrorCode.invalid_config,
            "Value must be at least 1048576",
        ),
        (
            a_topic(segment_bytes=None),
            ErrorCode.invalid_config,
            "Null value not supported for topic configs: segment.bytes",
        ),
        (
            a_topic(assignments={0: (5,)}),
            ErrorCode.invalid_request,
            "replication factor was not set to -1",
        ),
        (
            a_topic(replicas=-1, assignments={0: (5,)}),
            ErrorCode.invalid_request,
            "numPartitions was not set to -1",
        ),
        (
            a_topic(partitions=-1, replicas=-1, assignments={0: (6,)}),
            ErrorCode.invalid_replica_assignment,
            "includes broker 6, but no such broker is registered.",
        ),
        (
            a_topic(partitions=-1, replicas=-1, assignments={0: (5, 5)}),
            ErrorCode.invalid_replica_assignment,
            "more than once",
        ),
        (
            a_topic(partitions=-1, replicas=-1, assignments={0: ()}),
            ErrorCode.invalid_replica_assignment,
            "empty replica list",
        ),
        (
            a_topic(partitions=-1, replicas=-1, assignments={0: (5,), 2: (5,)}),
            ErrorCode.invalid_replica_assignment,
            "consecutive 0-based integer sequence",
        ),
    ],
)
def test_a_topic_that_cannot_be_is_refused_in_kafkas_words(
    asked: CreatableTopic, error_code: ErrorCode, message: str, broker: BrokerState, ask: Any
) -> None:
    at_once(broker.topics.create("taken", 1, {}))
    at_once(broker.topics.create("with.dot", 1, {}))

    refused, accepted = ask(CREATE_TOPICS, a_request(asked, a_topic("other"))).topics

    assert refused.error_code == error_code
    assert message in refused.error_message
    assert accepted.error_code == ErrorCode.none
    assert [topic.name for topic in broker.topics.all()] == ["other", "taken", "with.dot"]


def test_a_name_given_twice_is_created_not_even_once(broker: BrokerState, ask: Any) -> None:
    request = a_request(a_topic(partitions=1), a_topic(partitions=2), a_topic("u"))

    twice, once = ask(CREATE_TOPICS, request).topics

    assert (twice.error_code, twice.error_message) == (
        ErrorCode.invalid_request,
        "Duplicate topic name.",
    )
    assert once.error_code == ErrorCode.none
    assert [topic.name for topic in broker.topics.all()] == ["u"]


def test_topics_that_exceed_the_brokers_limit_together_are_all_refused(
    broker: BrokerState, ask: Any
) -> None:
    topics = [a_topic(f"t{number}", MAX_PARTITIONS_PER_TOPIC) for number in range(11)]

    results = ask(CREATE_TOPICS, a_request(*topics)).topics

    assert {result.error_code for result in results} == {ErrorCode.invalid_partitions}
    assert broker.topics.all() == []
