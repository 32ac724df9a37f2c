from itertools import pairwise

import pytest
from confluent_kafka import Consumer

from demo.sending import FeedError, FeedSender, messages_due
from headrace.testing import running_broker


def read_all(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "t", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, 30)]
    finally:
        consumer.close()


def test_all_that_is_in_the_books_is_on_the_topic():
    with running_broker() as broker:
        with FeedSender(broker.bootstrap, "readings", rate=2_000, seconds=0.5) as feed:
            books = feed.wait()
        values = read_all(broker.bootstrap, "readings", books.sent)

    assert len(values) == books.sent > 100


def test_leaving_early_ends_the_feed():
    with running_broker() as broker:
        with FeedSender(broker.bootstrap, "readings", rate=100, seconds=3600) as feed:
            assert feed.is_running

        assert not feed.is_running


def test_messages_that_were_not_taken_are_an_error():
    with (
        running_broker(message_max_bytes=30) as broker,
        FeedSender(broker.bootstrap, "readings", rate=2_000, seconds=0.2) as feed,
        pytest.raises(FeedError, match="were not taken"),
    ):
        feed.wait()


def test_the_pace_swings_around_the_rate():
    due = [messages_due(second, 100) for second in range(21)]
    steps = [after - before for before, after in pairwise(due)]

    assert due[20] == pytest.approx(2_000)
    assert min(steps) == pytest.approx(steps[0])
    assert steps[0] < 50
    assert max(steps) > 150
