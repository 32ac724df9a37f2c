"""Topics come, grow and go: CreateTopics, CreatePartitions, DeleteTopics, on both engines."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.wire import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    METADATA,
    WireClient,
    batch_of,
    topic_creation,
)

NONE, UNKNOWN_TOPIC, INVALID_TOPIC, TOPIC_EXISTS, INVALID_PARTITIONS = 0, 3, 17, 36, 37
INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG = 38, 39, 40
INVALID_REQUEST, UNKNOWN_TOPIC_ID = 42, 100
NOT_YET = (UNKNOWN_TOPIC, 6)  # what real Kafka's broker says until it is made the leader


def fresh_name() -> str:
    return f"t-{uuid.uuid4()}"


def create(wire: WireClient, version: int = 7, **changes: Any) -> Any:
    """Create one topic, as usual but for `changes`; return its part of the answer."""
    fields = topic_creation(changes.pop("name", None) or fresh_name())
    fields["validate_only"] = changes.pop("validate_only", False)
    fields["topics"][0] |= changes
    return wire.call(CREATE_TOPICS, version, **fields).topics[0]


def partition_count(wire: WireClient, topic: str) -> int:
    (answer,) = wire.call(METADATA, 1, topics=[{"name": topic}]).topics
    return len(answer.partitions)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(wire: WireClient, version: int) -> None:
    created = create(wire, version, num_partitions=3)

    assert created.error_code == NONE
    if version >= 5:
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert len(created.configs) == 33
    if version >= 7:
        while (topic_id := wire.topic_id(created.name)) is None:
            pass  # real Kafka's broker hears of it from its controller
        assert created.topic_id == topic_id


def test_minus_1_takes_the_brokers_defaults(wire: WireClient) -> None:
    created = create(wire, num_partitions=-1, replication_factor=-1)

    assert (created.error_code, created.num_partitions, created.replication_factor) == (NONE, 1, 1)


def test_a_manual_assignment_says_how_many_partitions(wire: WireClient) -> None:
    (broker,) = wire.call(METADATA, 1, topics=[]).brokers
    assignments = [{"partition_index": index, "broker_ids": [broker.node_id]} for index in range(2)]

    created = create(wire, num_partitions=-1, replication_factor=-1, assignments=assignments)

    assert (created.error_code, created.num_partitions) == (NONE, 2)


def test_overrides_are_in_the_answer(wire: WireClient) -> None:
    created = create(wire, configs=[{"name": "retention.ms", "value": "1234567"}])

    configs = {config.name: config for config in created.configs}
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1234567", 1)
    assert configs["segment.ms"].config_source == 5


def test_validate_only_creates_nothing(wire: WireClient) -> None:
    checked = create(wire, validate_only=True)
    refused = create(wire, validate_only=True, replication_factor=3)

    assert (checked.error_code, refused.error_code) == (NONE, INVALID_REPLICATION_FACTOR)
    again = create(wire, name=checked.name)
    assert again.error_code == NONE


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "three replicas on one node": ({"replication_factor": 3}, INVALID_REPLICATION_FACTOR),
    "no replicas": ({"replication_factor": 0}, INVALID_REPLICATION_FACTOR),
    "no partitions": ({"num_partitions": 0}, INVALID_PARTITIONS),
    "negative partitions": ({"num_partitions": -2}, INVALID_PARTITIONS),
    "a slash in the name": ({"name": "a/b"}, INVALID_TOPIC),
    "two dots": ({"name": ".."}, INVALID_TOPIC),
    "a long name": ({"name": "x" * 250}, INVALID_TOPIC),
    "a space in the name": ({"name": "a b"}, INVALID_TOPIC),
    "segments that are too small": (
        {"configs": [{"name": "segment.bytes", "value": "1000"}]},
        INVALID_CONFIG,
    ),
    "an unknown setting": ({"configs": [{"name": "no.such", "value": "1"}]}, INVALID_CONFIG),
    "a word for a number": ({"configs": [{"name": "retention.ms", "value": "x"}]}, INVALID_CONFIG),
    "a null value": ({"configs": [{"name": "retention.ms", "value": None}]}, INVALID_CONFIG),
    "an unknown policy": (
        {"configs": [{"name": "cleanup.policy", "value": "shred"}]},
        INVALID_CONFIG,
    ),
    "an unknown broker": (
        {
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": [4711]}],
        },
        INVALID_REPLICA_ASSIGNMENT,
    ),
    "a count beside an assignment": (
        {"num_partitions": 1, "assignments": [{"partition_index": 0, "broker_ids": [1]}]},
        INVALID_REQUEST,
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_created_is_refused_with_a_reason(wire: WireClient, why: str) -> None:
    changes, error = REFUSED[why]

    refused = create(wire, **changes)

    assert refused.error_code == error
    assert refused.error_message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"name": "no.such", "value": "1"}, "Unknown topic config name: no.such"),
        (
            {"name": "segment.bytes", "value": "1000"},
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            {"name": "retention.ms", "value": "x"},
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
    ],
)
def test_settings_are_refused_in_kafkas_words(
    wire: WireClient, config: dict[str, str], message: str
) -> None:
    assert create(wire, configs=[config]).error_message == message


def test_a_topic_is_created_once(wire: WireClient, topic: str) -> None:
    refused = create(wire, name=topic)

    assert refused.error_code == TOPIC_EXISTS
    assert refused.error_message == f"Topic '{topic}' already exists."


def test_names_that_differ_only_in_dots_and_underscores_collide(wire: WireClient) -> None:
    base = uuid.uuid4()
    assert create(wire, name=f"a.{base}").error_code == NONE

    assert create(wire, name=f"a_{base}").error_code == INVALID_TOPIC


def test_the_same_name_twice_in_a_request_is_refused(wire: WireClient) -> None:
    fields = topic_creation(fresh_name())
    fields["topics"] *= 2

    answer = wire.call(CREATE_TOPICS, 7, **fields)

    assert {topic.error_code for topic in answer.topics} == {INVALID_REQUEST}


def grow(wire: WireClient, topic: str, count: int, **changes: Any) -> Any:
    part = {"name": topic, "count": count, "assignments": None}
    fields = {"topics": [part], "timeout": 10_000, "validate_only": False, **changes}
    return wire.call(CREATE_PARTITIONS, 3, **fields).results[0]


def test_a_topic_grows_and_keeps_what_it_has(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    wire.produce(topic, batch_of(1))

    assert grow(wire, topic, 3).error_code == NONE

    while partition_count(wire, topic) != 3:
        pass  # real Kafka's broker hears of it from its controller
    answer = wire.produce(topic, batch_of(1), partition=2)
    while answer.error_code in NOT_YET:
        answer = wire.produce(topic, batch_of(1), partition=2)
    assert (answer.error_code, answer.base_offset) == (NONE, 0)
    assert wire.fetch(topic, 0).high_watermark == 1


@pytest.mark.parametrize("count", [3, 2, 0, -1])
def test_a_topic_cannot_stay_or_shrink(
    wire: WireClient, new_topic: Callable[..., str], count: int
) -> None:
    topic = new_topic(partitions=3)

    refused = grow(wire, topic, count)

    assert refused.error_code == INVALID_PARTITIONS
    assert refused.error_message


def test_growth_can_be_tried_out(wire: WireClient, topic: str) -> None:
    assert grow(wire, topic, 5, validate_only=True).error_code == NONE
    assert grow(wire, topic, 2).error_code == NONE
    assert grow(wire, "no-such-topic", 2).error_code == UNKNOWN_TOPIC


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes(wire: WireClient, topic: str, version: int) -> None:
    fields: dict[str, Any] = {"timeout": 10_000}
    if version >= 6:
        fields["topics"] = [{"name": topic, "topic_id": None}]
    else:
        fields["topic_names"] = [topic]

    answer = wire.call(DELETE_TOPICS, version, **fields)

    assert [(part.name, part.error_code) for part in answer.responses] == [(topic, NONE)]
    while wire.fetch(topic, 0).error_code != UNKNOWN_TOPIC:
        pass


def test_a_topic_is_deleted_by_its_id(wire: WireClient, topic: str) -> None:
    topics = [{"name": None, "topic_id": wire.topic_id(topic)}]

    answer = wire.call(DELETE_TOPICS, 6, topics=topics, timeout=10_000)

    assert (answer.responses[0].name, answer.responses[0].error_code) == (topic, NONE)


def test_what_is_not_there_cannot_be_deleted(wire: WireClient) -> None:
    by_name = [{"name": "no-such-topic", "topic_id": None}]
    by_id = [{"name": None, "topic_id": uuid.uuid4()}]

    name_answer = wire.call(DELETE_TOPICS, 6, topics=by_name, timeout=10_000).responses[0]
    id_answer = wire.call(DELETE_TOPICS, 6, topics=by_id, timeout=10_000).responses[0]

    assert (name_answer.error_code, id_answer.error_code) == (UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID)


def test_a_new_topic_of_an_old_name_is_another_topic(wire: WireClient, topic: str) -> None:
    wire.produce(topic, batch_of(3))
    old_id = wire.topic_id(topic)
    topics = [{"name": topic, "topic_id": None}]
    wire.call(DELETE_TOPICS, 6, topics=topics, timeout=10_000)

    created = create(wire, name=topic)

    assert created.error_code == NONE
    assert created.topic_id != old_id
    answer = wire.produce(topic, batch_of(1))
    while answer.error_code in NOT_YET:
        answer = wire.produce(topic, batch_of(1))
    assert answer.base_offset == 0
