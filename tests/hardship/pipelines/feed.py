"""A feed that goes on whatever dies around it, and what lake and table must hold because of it.

The log is the truth: what was written is read back from it by a plain consumer, and the lake and
the table are computed from that in a few lines of Python, without Spark.
"""

import itertools
import json
import random
import threading
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "readings"
PARTITIONS = 4
SENSORS = 50
SCHEMA = "sensor string not null, reading bigint"
_PATIENCE_SECONDS = 240.0
_BURST = 100  # messages between two pauses of 0.1 s: some 1,000 a second, unless told otherwise


class Record(NamedTuple):
    """One message of the log."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Feed:
    """Writes until it is told to stop; used as a context. Every message is acknowledged once."""

    def __init__(
        self, bootstrap: str, seed: int, *, topic: str = TOPIC, burst: int = _BURST
    ) -> None:
        self._topic = topic
        self._burst = burst
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "log_level": 0,
                "reconnect.backoff.max.ms": 200,
                "message.timeout.ms": int(_PATIENCE_SECONDS * 1000),
            }
        )
        self._rng = random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, name="feed")
        self.acknowledged = 0
        self.faults: list[str] = []

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(_PATIENCE_SECONDS) == 0
        assert self.faults == []

    def _write(self) -> None:
        for number in itertools.count():
            if self._is_over.is_set():
                return
            sensor = f"sensor-{self._rng.randrange(SENSORS)}"
            value = self._value(sensor, number)
            self._producer.produce(self._topic, value, key=sensor, on_delivery=self._on_delivery)
            if number % self._burst == 0:
                self._producer.poll(0)
                self._is_over.wait(0.1)  # a feed, not a flood

    def _value(self, sensor: str, number: int) -> bytes | None:
        dice = self._rng.random()
        if dice < 0.02:
            return None
        text = json.dumps({"sensor": sensor, "reading": number})
        return text[: len(text) // 2].encode() if dice < 0.04 else text.encode()

    def _on_delivery(self, error: object, _message: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.faults.append(str(error))


def create_topic(bootstrap: str, topic: str = TOPIC, partitions: int = PARTITIONS) -> None:
    """Make a topic, by default the feed's, with as many copies as the engine gives by default."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, -1)]).values():
        future.result(_PATIENCE_SECONDS)


def read_log(bootstrap: str, topic: str = TOPIC) -> list[Record]:
    """All messages of the topic, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "recomputation",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    records, open_partitions = list[Record](), set(range(PARTITIONS))
    try:
        consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in open_partitions])
        while open_partitions:
            for message in consumer.consume(10_000, 1.0):
                if message.error() is not None:
                    assert message.error().code() == message.error()._PARTITION_EOF, message.error()
                    open_partitions.discard(message.partition())
                    continue
                place = message.partition(), message.offset(), message.timestamp()[1]
                records.append(Record(*place, message.key(), message.value()))
    finally:
        consumer.close()
    return sorted(records)


def expected_table(records: list[Record]) -> dict[str, tuple[int, int, int]]:
    """Reading, partition and offset by sensor: the last good record of each, unless deleted."""
    table = dict[str, tuple[int, int, int]]()
    for record in records:
        assert record.key is not None
        sensor = record.key.decode()
        if record.value is None:
            table.pop(sensor, None)
            continue
        try:
            fields = json.loads(record.value)
        except ValueError:
            continue
        table[sensor] = (fields["reading"], record.partition, record.offset)
    return table


def bad_places(records: list[Record]) -> set[tuple[int, int]]:
    """Partition and offset of each record that is not JSON."""
    return {
        (record.partition, record.offset)
        for record in records
        if record.value is not None and not record.value.endswith(b"}")
    }
