"""Groups: listed, described and deleted by name."""

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from tests.contracts.bus import PATIENCE_S, Bus, assigned, numbered, poll, wait_for


def state(bus: Bus, group: str) -> ConsumerGroupState:
    return bus.done(bus.admin.describe_consumer_groups([group]))[0].state


def leave_a_commit(bus: Bus, group: str, topic: str) -> None:
    bus.send(topic, numbered(3))
    with bus.consumer(group) as member:
        member.subscribe([topic])
        poll(member, 3)
        member.commit(asynchronous=False)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_described_with_its_members_and_what_they_read(
    bus: Bus, group: str, protocol: str
) -> None:
    topic = bus.new_topic(3)
    with bus.consumer(group, group_protocol=protocol, client_id="a client") as member:
        member.subscribe([topic])
        assigned([member], 3)
        wait_for(lambda: state(bus, group) == ConsumerGroupState.STABLE)
        found = bus.done(bus.admin.describe_consumer_groups([group]))[0]

    (seen,) = found.members
    assert found.group_id == group
    assert found.type == ConsumerGroupType[protocol.upper()]
    assert found.is_simple_consumer_group is False
    assert found.partition_assignor == {"classic": "range", "consumer": "uniform"}[protocol]
    assert seen.client_id == "a client"
    assert seen.host.lstrip("/") == "127.0.0.1"
    places = seen.assignment.topic_partitions
    assert sorted((place.topic, place.partition) for place in places) == [
        (topic, number) for number in range(3)
    ]


def test_a_group_is_listed_until_it_is_deleted(bus: Bus, topic: str, group: str) -> None:
    def listed() -> dict[str, ConsumerGroupState]:
        answer = bus.admin.list_consumer_groups().result(PATIENCE_S)
        assert not answer.errors
        return {each.group_id: each.state for each in answer.valid}

    leave_a_commit(bus, group, topic)
    wait_for(lambda: listed().get(group) == ConsumerGroupState.EMPTY)

    bus.done(bus.admin.delete_consumer_groups([group]))

    assert group not in listed()


def test_a_group_that_is_deleted_has_forgotten_its_place(bus: Bus, topic: str, group: str) -> None:
    leave_a_commit(bus, group, topic)
    bus.done(bus.admin.delete_consumer_groups([group]))

    with bus.consumer(group) as member:
        member.subscribe([topic])

        assert [message.offset() for message in poll(member, 3)] == [0, 1, 2]


def test_a_group_with_members_is_not_deleted(bus: Bus, topic: str, group: str) -> None:
    with bus.consumer(group) as member:
        member.subscribe([topic])
        assigned([member], 1)

        with pytest.raises(KafkaException) as refused:
            bus.done(bus.admin.delete_consumer_groups([group]))

    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP


def test_a_group_nobody_knows_cannot_be_deleted_and_is_described_as_dead(
    bus: Bus, group: str
) -> None:
    with pytest.raises(KafkaException) as refused:
        bus.done(bus.admin.delete_consumer_groups([group]))

    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
    assert state(bus, group) == ConsumerGroupState.DEAD


def test_the_offsets_of_a_group_are_listed_for_all_its_topics(bus: Bus, group: str) -> None:
    topics = sorted(bus.new_topic() for _ in range(2))
    for topic in topics:
        leave_a_commit(bus, group, topic)

    wish = [ConsumerGroupTopicPartitions(group)]
    answer = bus.done(bus.admin.list_consumer_group_offsets(wish))[0]

    places = sorted(answer.topic_partitions, key=lambda place: place.topic)
    assert [(place.topic, place.partition, place.offset) for place in places] == [
        (topic, 0, 3) for topic in topics
    ]
    assert TopicPartition(topics[0], 0, 3) in places
