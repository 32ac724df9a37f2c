"""The drill's readers: consumers that read along, and the reading of the whole topic at the end.

A rebalance may hand a consumer records that another has taken already; by their offsets they
are told apart from records that are stored twice.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.kafka.drill.clients import Config
from headrace.kafka.drill.ledger import Reading
from headrace.kafka.drill.message import Stream, decode
from headrace.kafka.errors import DrillError

_POLL_S = 0.2
_RECORDS_A_POLL = 1000
_ASK_TIMEOUT_S = 10.0


class LiveConsumers:
    """A consumer group that reads a topic while it is written. Thread-safe."""

    def __init__(self, config: Config, topic: str, streams: Sequence[Stream], count: int) -> None:
        self.reading = Reading(streams)
        self.read_again = 0
        self.next_offsets = dict[int, int]()
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._read, args=(config, topic), name=f"drill-consumer-{n}", daemon=True
            )
            for n in range(count)
        ]

    def start(self) -> None:
        """Join the group and begin to read."""
        for thread in self._threads:
            thread.start()

    def drain(self, ends: Mapping[int, int], timeout_s: float, tick: Callable[[], None]) -> None:
        """Wait until every partition is read up to its end, or for `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if all(self.next_offsets.get(each, 0) >= end for each, end in ends.items()):
                return
            tick()
            time.sleep(_POLL_S / 4)

    def stop(self, timeout_s: float) -> None:
        """Leave the group; a coordinator that is away is waited for no longer than `timeout_s`."""
        self._is_stopping.set()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def take(self, partition: int, offset: int, value: bytes | None) -> None:
        """Take in one record, wherever it comes from."""
        with self._lock:
            if offset < self.next_offsets.get(partition, 0):
                self.read_again += 1
                return
            self.next_offsets[partition] = offset + 1
            _take(self.reading, partition, value)

    def _read(self, config: Config, topic: str) -> None:
        from confluent_kafka import Consumer

        consumer: Any = Consumer(config)
        consumer.subscribe([topic])
        while not self._is_stopping.is_set():
            for message in consumer.consume(_RECORDS_A_POLL, _POLL_S):
                if message.error() is None:
                    self.take(message.partition(), message.offset(), message.value())
        consumer.close()


def _take(reading: Reading, partition: int, value: bytes | None) -> None:
    place = decode(value)
    if place is None:
        reading.strays += 1
    else:
        reading.take(partition, *place)


def end_offsets(config: Config, topic: str, partitions: int) -> dict[int, int]:
    """Where each partition ends; DrillError when a leader does not tell."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer: Any = Consumer(config)
    try:
        return {
            number: consumer.get_watermark_offsets(
                TopicPartition(topic, number), timeout=_ASK_TIMEOUT_S
            )[1]
            for number in range(partitions)
        }
    except KafkaException as error:
        raise DrillError(f"the end of {topic} cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def read_whole(
    config: Config,
    topic: str,
    streams: Sequence[Stream],
    ends: Mapping[int, int],
    *,
    timeout_s: float,
    on_progress: Callable[[int, int], None],
) -> Reading:
    """Read a topic from its beginning to `ends`; `timeout_s` is for any one silence."""
    from confluent_kafka import Consumer, TopicPartition

    reading = Reading(streams)
    total, taken = sum(ends.values()), 0
    left = {number for number, end in ends.items() if end > 0}
    consumer: Any = Consumer({**config, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        heard_at = time.monotonic()
        while left:
            messages = consumer.consume(_RECORDS_A_POLL, _POLL_S)
            for message in messages:
                if message.error() is not None:
                    continue
                heard_at = time.monotonic()
                taken += 1
                partition = message.partition()
                _take(reading, partition, message.value())
                if message.offset() + 1 >= ends[partition]:
                    left.discard(partition)
            on_progress(taken, total)
            if time.monotonic() - heard_at > timeout_s:
                raise DrillError(
                    f"{topic} fell silent after {taken:,} of {total:,} records; "
                    f"partitions {sorted(left)} are not read to their end"
                )
    finally:
        consumer.close()
    return reading
