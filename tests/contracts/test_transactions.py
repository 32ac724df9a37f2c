"""Transactions: messages to several partitions, and a group's place with them, or none of it."""

import pytest
from confluent_kafka import TopicPartition
from tests.contracts.bus import PATIENCE_S, Bus, numbered, poll, values


@pytest.mark.differs("transactions")
def test_a_reader_of_committed_messages_sees_all_of_a_transaction_or_nothing(
    bus: Bus, group: str
) -> None:
    topic = bus.new_topic(2)
    producer = bus.producer(transactional_id=group)
    producer.init_transactions(bus.patience_s)
    for prefix in ("aborted-", "kept-"):
        producer.begin_transaction()
        for partition in range(2):
            for value in numbered(5, f"{prefix}{partition}-"):
                producer.produce(topic, value, partition=partition)
        if prefix == "kept-":
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)

    with bus.consumer(f"{group}-reader", isolation_level="read_committed") as reader:
        reader.subscribe([topic])
        got = values(poll(reader, 10))

    assert sorted(got) == sorted(numbered(5, "kept-0-") + numbered(5, "kept-1-"))


@pytest.mark.differs("transactions")
def test_a_groups_place_is_committed_with_what_was_made_of_the_messages(
    bus: Bus, topic: str, group: str
) -> None:
    bus.send(topic, numbered(5))
    made = bus.new_topic()
    producer = bus.producer(transactional_id=group)
    producer.init_transactions(bus.patience_s)
    with bus.consumer(group) as member:
        member.subscribe([topic])
        got = poll(member, 5)
        producer.begin_transaction()
        for message in got:
            producer.produce(made, message.value())
        place = TopicPartition(topic, 0, 5)
        producer.send_offsets_to_transaction([place], member.consumer_group_metadata(), PATIENCE_S)
        producer.commit_transaction(PATIENCE_S)

        assert member.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)[0].offset == 5

    assert [each for each in values(bus.read(made)) if each] == numbered(5)
