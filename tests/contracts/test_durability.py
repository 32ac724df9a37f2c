"""Durability: what was acknowledged is there after a kill -9, and so is all that belongs to it."""

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType
from tests.contracts.bus import PATIENCE_S, Bus, numbered, values
from tests.contracts.crash import COUNT, Before, Crash

# A node of Kafka may take a minute to start again on a machine that is busy.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def before(crashed: Crash) -> Before:
    """What was there when the bus was killed."""
    return crashed.before


@pytest.mark.parametrize("acks", ["1", "all"])
def test_every_acknowledged_message_is_back_at_its_offset(
    bus: Bus, before: Before, acks: str
) -> None:
    found = bus.read(before.topics[acks], 1)

    assert values(found) == numbered(COUNT)
    assert [message.offset() for message in found] == before.acknowledged[acks]


def test_without_acknowledgement_what_is_back_is_in_order_and_whole(
    bus: Bus, before: Before
) -> None:
    found = values(bus.read(before.topics["0"], 1))

    assert found == numbered(COUNT)[: len(found)]


def test_a_groups_place_and_its_remark_are_back(bus: Bus, before: Before) -> None:
    with bus.consumer(before.group) as member:
        place = TopicPartition(before.topics["all"], 1)
        (found,) = member.committed([place], timeout=PATIENCE_S)

    assert found.offset == 42
    assert found.metadata == "a remark"


def test_topics_are_back_with_their_ids_partitions_and_configs(bus: Bus, before: Before) -> None:
    topic = before.topics["all"]
    resource = ConfigResource(ResourceType.TOPIC, topic)

    assert bus.topic_id(topic) == before.topic_id
    assert bus.partitions_of(topic) == 3
    assert bus.done(bus.admin.describe_configs([resource]))[0]["retention.ms"].value == "777000"


def test_new_messages_go_behind_the_old_ones(bus: Bus, before: Before) -> None:
    (sent,) = bus.send(before.topics["1"], [b"new"], partition=1)

    assert sent.offset() == COUNT
