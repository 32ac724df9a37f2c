"""Offsets: a group's place in a topic is kept, with a remark, and can be changed."""

import pytest
from confluent_kafka import OFFSET_INVALID, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import OffsetSpec
from tests.contracts.bus import PATIENCE_S, Bus, numbered, poll, values


def committed(bus: Bus, group: str, topic: str, partition: int = 0) -> TopicPartition:
    with bus.consumer(group) as consumer:
        place = TopicPartition(topic, partition)
        found: TopicPartition = consumer.committed([place], timeout=PATIENCE_S)[0]
        return found


def commit(bus: Bus, group: str, *places: TopicPartition) -> None:
    with bus.consumer(group) as consumer:
        for place in consumer.commit(offsets=list(places), asynchronous=False):
            assert place.error is None


def test_a_group_without_a_commit_has_no_offset(bus: Bus, topic: str, group: str) -> None:
    assert committed(bus, group, topic).offset == OFFSET_INVALID


def test_a_commit_is_kept_with_its_remark(bus: Bus, topic: str, group: str) -> None:
    commit(bus, group, TopicPartition(topic, 0, 7, "up to Ærø"))

    found = committed(bus, group, topic)

    assert found.offset == 7
    assert found.metadata == "up to Ærø"


def test_the_last_commit_counts_even_if_it_goes_back(bus: Bus, topic: str, group: str) -> None:
    for offset in (3, 9, 5):
        commit(bus, group, TopicPartition(topic, 0, offset))

    assert committed(bus, group, topic).offset == 5


def test_groups_and_partitions_have_offsets_of_their_own(bus: Bus, group: str) -> None:
    topic = bus.new_topic(2)
    commit(bus, group, TopicPartition(topic, 0, 1), TopicPartition(topic, 1, 2))
    commit(bus, f"{group}-other", TopicPartition(topic, 0, 3))

    assert committed(bus, group, topic, 0).offset == 1
    assert committed(bus, group, topic, 1).offset == 2
    assert committed(bus, f"{group}-other", topic, 0).offset == 3


def test_a_group_goes_on_at_its_commit_not_at_its_position(
    bus: Bus, topic: str, group: str
) -> None:
    bus.send(topic, numbered(10))
    with bus.consumer(group) as member:
        member.subscribe([topic])
        got = poll(member, 10)
        member.commit(message=got[3], asynchronous=False)

    with bus.consumer(group) as member:
        member.subscribe([topic])

        assert values(poll(member, 6)) == numbered(10)[4:]


def test_automatic_commits_are_made_when_a_member_leaves(bus: Bus, topic: str, group: str) -> None:
    bus.send(topic, numbered(10))
    with bus.consumer(group, enable_auto_commit=True) as member:
        member.subscribe([topic])
        poll(member, 10)

    assert committed(bus, group, topic).offset == 10


@pytest.mark.parametrize(
    ("spec", "expected"),
    [(OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 4), (OffsetSpec.for_timestamp(2500), 2)],
    ids=["oldest", "latest", "time"],
)
def test_an_empty_group_is_reset_to_where_the_bus_says(
    bus: Bus, group: str, spec: OffsetSpec, expected: int
) -> None:
    topic = bus.new_topic(retention_ms=-1)
    for time_ms in (1000, 2000, 3000, 4000):
        bus.send(topic, [b"v"], timestamp=time_ms)
    commit(bus, group, TopicPartition(topic, 0, 1))

    found = bus.done(bus.admin.list_offsets({TopicPartition(topic, 0): spec}))[0].offset
    target = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, found)])
    bus.done(bus.admin.alter_consumer_group_offsets([target]))

    assert found == expected
    assert committed(bus, group, topic).offset == expected


def test_a_group_that_reads_is_not_reset_from_outside(bus: Bus, topic: str, group: str) -> None:
    bus.send(topic, numbered(2))
    with bus.consumer(group) as member:
        member.subscribe([topic])
        poll(member, 2)
        member.commit(asynchronous=False)

        target = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])
        answer = bus.done(bus.admin.alter_consumer_group_offsets([target]))[0]

        assert answer.topic_partitions[0].error is not None
        assert member.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)[0].offset == 2
