"""Publish and subscribe: what is published once reaches everyone who subscribed."""

import contextlib

from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from tests.contracts.bus import Bus, numbered, poll, values


def test_every_group_gets_every_message(bus: Bus, topic: str, group: str) -> None:
    with contextlib.ExitStack() as stack:
        subscribers = [
            stack.enter_context(bus.consumer(f"{group}-{number}")) for number in range(3)
        ]
        for subscriber in subscribers:
            subscriber.subscribe([topic])

        bus.send(topic, numbered(20))

        for subscriber in subscribers:
            assert values(poll(subscriber, 20)) == numbered(20)


def test_a_reader_without_a_group_takes_nothing_from_a_group(
    bus: Bus, topic: str, group: str
) -> None:
    bus.send(topic, numbered(20))

    with bus.consumer() as reader, bus.consumer(group) as member:
        reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        member.subscribe([topic])

        assert values(poll(reader, 20)) == numbered(20)
        assert values(poll(member, 20)) == numbered(20)


def test_a_subscriber_of_two_topics_gets_both_and_no_third(bus: Bus, group: str) -> None:
    topics = [bus.new_topic() for _ in range(3)]
    for topic in topics:
        bus.send(topic, numbered(5, topic))

    with bus.consumer(group) as subscriber:
        subscriber.subscribe(topics[:2])
        got = values(poll(subscriber, 10))

    assert sorted(got) == sorted(numbered(5, topics[0]) + numbered(5, topics[1]))
