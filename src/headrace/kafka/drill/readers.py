"""The drill's readers: consumers that read along, and the reading of the whole topic at the end.

A rebalance may hand a consumer records that another has taken already; by their offsets they
are told apart from records that are stored twice.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from headrace.client.admin import Admin
from headrace.client.bus import READ_UNCOMMITTED, Bus
from headrace.client.errors import BusError
from headrace.client.librdkafka import make_consumer
from headrace.client.ranges import read_ranges
from headrace.kafka.drill.election import Timeouts
from headrace.kafka.drill.ledger import Reading
from headrace.kafka.drill.message import Stream, decode
from headrace.kafka.errors import DrillError
from headrace.patience import Patience

_POLL_S = 0.2
_RECORDS_A_POLL = 1000
_ASK_TIMEOUT_S = 10.0
_PREFETCH_KBYTES = 16 * 1024

Config = dict[str, object]


def consumer_config(timeouts: Timeouts, group: str) -> Config:
    """Reads from the beginning; a group's members commit as they go."""
    return {
        **timeouts.client_config(),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 1000,
        "queued.max.messages.kbytes": _PREFETCH_KBYTES,
    }


class LiveConsumers:
    """A consumer group that reads a topic while it is written. Thread-safe."""

    def __init__(
        self, bus: Bus, config: Config, topic: str, streams: Sequence[Stream], count: int
    ) -> None:
        self.reading = Reading(streams)
        self.read_again = 0
        self.next_offsets = dict[int, int]()
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._read,
                args=(bus, config, topic),
                name=f"drill-consumer-{n}",
                daemon=True,
            )
            for n in range(count)
        ]

    def start(self) -> None:
        """Join the group and begin to read."""
        for thread in self._threads:
            thread.start()

    def drain(self, ends: Mapping[int, int], timeout_s: float, tick: Callable[[], None]) -> None:
        """Wait until every partition is read up to its end, or for `timeout_s`."""
        Patience(timeout_s, meanwhile=tick).until(
            lambda: all(self.next_offsets.get(each, 0) >= end for each, end in ends.items())
        )

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

    def _read(self, bus: Bus, config: Config, topic: str) -> None:
        consumer = make_consumer(bus, config)
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


def end_offsets(bus: Bus, topic: str, partitions: int) -> dict[int, int]:
    """Where each partition ends; DrillError when a leader does not tell."""
    try:
        ends = Admin(bus, timeout_s=_ASK_TIMEOUT_S).end_offsets(
            (topic, number) for number in range(partitions)
        )
    except BusError as error:
        raise DrillError(f"the end of {topic} cannot be read: {error}") from error
    return {number: end for (_, number), end in ends.items()}


def read_whole(
    bus: Bus,
    timeouts: Timeouts,
    topic: str,
    streams: Sequence[Stream],
    ends: Mapping[int, int],
    *,
    timeout_s: float,
    on_progress: Callable[[int, int], None],
) -> Reading:
    """Read a topic from its beginning to `ends`; `timeout_s` is for any one silence."""
    reading = Reading(streams)
    total, taken = sum(ends.values()), 0
    left = {number for number, end in ends.items() if end > 0}

    def look() -> bool:
        on_progress(taken, total)  # it ends all by raising
        return False

    batches = read_ranges(
        bus,
        {(topic, number): (0, ends[number]) for number in left},
        timeout_s=timeout_s,
        isolation_level=READ_UNCOMMITTED,
        is_stopped=look,
        config=timeouts.client_config(),
    )
    try:
        for batch in batches:
            for message in batch:
                taken += 1
                partition = message.partition()
                _take(reading, partition, message.value())
                if message.offset() + 1 >= ends[partition]:
                    left.discard(partition)
    except BusError as error:
        raise DrillError(f"{topic}, after {taken:,} of {total:,} records: {error}") from error
    if left:
        raise DrillError(
            f"{topic} ended after {taken:,} of {total:,} records; "
            f"partitions {sorted(left)} are shorter than they said"
        )
    return reading
