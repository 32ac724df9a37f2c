import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.watch import Progress, Watcher, rates_in
from headrace.testing import running_broker


def test_a_look_shows_ends_positions_and_dead_letters():
    with running_broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.create_topics([NewTopic("readings", 2, 1)]).values():
            future.result(120)
        watcher = Watcher(
            broker.bootstrap,
            "readings",
            groups=("archive", "table"),
            dead_letter_topic="table.dead-letters",
        )
        assert watcher.look()[1:] == (0, {"archive": 0, "table": 0}, 0)

        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(10):
            producer.produce("readings", b"x", partition=number % 2)
        producer.produce("table.dead-letters", b"bad")
        producer.flush(120)
        positions = [TopicPartition("readings", 0, 5), TopicPartition("readings", 1, 2)]
        asked = [ConsumerGroupTopicPartitions("archive", positions)]
        for future in admin.alter_consumer_group_offsets(asked).values():
            future.result(120)
        look = watcher.look()

    assert look[1:] == (10, {"archive": 7, "table": 0}, 1)
    assert look.lag("archive") == 3
    assert watcher.looks[-1] is look


def test_rates_are_taken_over_some_seconds():
    looks = [Progress(float(second), 0, {}, 0) for second in range(12)]
    counts = [0, 0, 0, 0, 0, 100, 100, 100, 100, 100, 100, 100]

    rates = rates_in(looks, counts)

    assert rates[0] == 0
    assert rates[5] == pytest.approx(20)
    assert rates[9] == pytest.approx(20)
    assert rates[11] == 0
