"""What is on a topic, read by a plain consumer."""

from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.pipelines.definition import OpenSink
from headrace.pipelines.spans import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Seen(NamedTuple):
    """One record as a client sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    time_ms: int
    headers: tuple[tuple[str, bytes | None], ...]


def records_on(bootstrap: str, topic: str) -> list[Seen]:
    """All records of a topic, by partition and offset."""
    consumer: Any = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        seen, left = list[Seen](), set(partitions)
        while left:
            message = consumer.poll(10)
            if message is not None:
                if message.error():
                    left.discard(message.partition())
                    continue
                seen.append(
                    Seen(
                        message.partition(),
                        message.offset(),
                        message.key(),
                        message.value(),
                        message.timestamp()[1],
                        tuple(message.headers() or ()),
                    )
                )
    finally:
        consumer.close()
    return sorted(seen, key=lambda record: record[:2])


def produce(bootstrap: str, topic: str, records: list[Seen]) -> None:
    """Put records on a topic; offsets are the broker's."""
    producer: Any = Producer({"bootstrap.servers": bootstrap})
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            record.partition,
            timestamp=record.time_ms,
            headers=list(record.headers),
        )
    assert producer.flush(120) == 0


def give(sink: OpenSink, rows: "DataFrame", batch: Batch) -> bool:
    """Write what a sink lacks of a batch, as a run does; False if it has all of it."""
    left = sink.written().left_of(batch)
    assert left is None or left is batch, "the rows would have to be chosen"
    return left is not None and sink.write(rows, batch)
