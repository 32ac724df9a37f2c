"""Reconnection: the bus is killed and comes back; producers and consumers go on by themselves."""

import pytest
from confluent_kafka import TopicPartition
from tests.contracts.bus import PATIENCE_S, Bus, values
from tests.contracts.crash import KILL_AFTER, Crash, Story

# A node of Kafka may take a minute to start again on a machine that is busy.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def story(crashed: Crash) -> Story:
    """What the clients saw that lived through it."""
    return crashed.story


def test_the_producer_goes_on_and_every_message_is_acknowledged_in_order(story: Story) -> None:
    assert len(story.sent) > KILL_AFTER
    assert story.acknowledged == story.sent
    assert story.offsets == list(range(len(story.sent)))


def test_nothing_is_lost_doubled_or_reordered(bus: Bus, story: Story) -> None:
    assert values(bus.read(story.topic)) == story.sent


def test_the_consumer_goes_on_where_it_was(story: Story) -> None:
    assert story.received == story.sent


def test_the_group_goes_on_committing(bus: Bus, story: Story) -> None:
    assert story.committed == len(story.sent)
    with bus.consumer(f"group-{story.topic}") as member:
        (found,) = member.committed([TopicPartition(story.topic, 0)], timeout=PATIENCE_S)
    assert found.offset == len(story.sent)
