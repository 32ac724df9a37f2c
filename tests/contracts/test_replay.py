"""Replay: a reader starts wherever it wants, and goes back as often as it wants."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, TopicPartition
from tests.contracts.bus import PATIENCE_S, Bus, numbered, poll, values, wait_for, wait_for_end

COUNT = 20
# Message n was made at this time and n seconds.
START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def filled(bus: Bus) -> str:
    """A topic of messages a second apart, in several batches."""
    topic = bus.new_topic(retention_ms=-1)
    producer = bus.producer(batch_num_messages=3)
    for number, value in enumerate(numbered(COUNT)):
        producer.produce(topic, value, timestamp=START_MS + number * 1000)
    assert producer.flush(PATIENCE_S) == 0
    return topic


def offset_at(consumer: Consumer, topic: str, time_ms: int) -> int:
    places = [TopicPartition(topic, 0, time_ms)]
    return int(consumer.offsets_for_times(places, timeout=PATIENCE_S)[0].offset)


def test_a_reader_starts_with_the_oldest(bus: Bus, filled: str) -> None:
    with bus.consumer() as reader:
        reader.assign([TopicPartition(filled, 0, OFFSET_BEGINNING)])

        assert values(poll(reader, COUNT)) == numbered(COUNT)


def test_a_reader_starts_at_an_offset(bus: Bus, filled: str) -> None:
    with bus.consumer() as reader:
        reader.assign([TopicPartition(filled, 0, 7)])
        first = poll(reader, 1)[0]

    assert (first.offset(), first.value()) == (7, b"7")


def test_a_reader_starts_with_what_comes_next(bus: Bus, topic: str) -> None:
    bus.send(topic, [b"old"])
    with bus.consumer(enable_partition_eof=True) as reader:
        reader.assign([TopicPartition(topic, 0, OFFSET_END)])
        wait_for_end(reader)
        bus.send(topic, [b"new"])

        assert values(poll(reader, 1)) == [b"new"]


@pytest.mark.parametrize(
    ("time_ms", "offset"),
    [
        (0, 0),
        (START_MS, 0),
        (START_MS + 1, 1),
        (START_MS + 7000, 7),
        (START_MS + 6001, 7),
        (START_MS + (COUNT - 1) * 1000, COUNT - 1),
    ],
)
def test_a_time_is_the_first_message_at_or_after_it(
    bus: Bus, filled: str, time_ms: int, offset: int
) -> None:
    with bus.consumer() as reader:
        assert offset_at(reader, filled, time_ms) == offset


def test_a_time_after_the_last_message_is_the_end(bus: Bus, filled: str) -> None:
    with bus.consumer() as reader:
        assert offset_at(reader, filled, START_MS + COUNT * 1000) == OFFSET_END


def test_a_reader_goes_back_and_forth(bus: Bus, filled: str) -> None:
    with bus.consumer() as reader:
        reader.assign([TopicPartition(filled, 0, OFFSET_BEGINNING)])
        poll(reader, COUNT)

        for offset in (3, 15, 0):
            reader.seek(TopicPartition(filled, 0, offset))
            assert values(poll(reader, COUNT - offset)) == numbered(COUNT)[offset:]


def test_an_offset_that_is_not_there_leads_where_the_reader_has_said(bus: Bus, topic: str) -> None:
    bus.send(topic, numbered(3))
    nowhere = TopicPartition(topic, 0, 1000)
    with bus.consumer(auto_offset_reset="earliest") as reader:
        reader.assign([nowhere])
        assert values(poll(reader, 3)) == numbered(3)

    with bus.consumer(auto_offset_reset="latest", enable_partition_eof=True) as reader:
        reader.assign([nowhere])
        wait_for_end(reader)
        bus.send(topic, [b"next"])
        assert values(poll(reader, 1)) == [b"next"]

    with bus.consumer(auto_offset_reset="error") as reader:
        reader.assign([nowhere])
        refusal = wait_for(lambda: reader.poll(0.1))
        assert refusal.error().code() == KafkaError._AUTO_OFFSET_RESET
