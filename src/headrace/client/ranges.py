"""Stretches of partitions, read once by a consumer that joins no group and commits nothing."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from headrace.client.bus import ISOLATION_LEVEL, READ_COMMITTED, Bus
from headrace.client.error_table import is_end_of_partition, is_unknown
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition, bus_errors, error_of, make_consumer, places
from headrace.patience import StoppedError

_BATCH = 2000
_WAIT_S = 0.1  # how late a stop is seen
_DOUBT_S = 2.0  # of silence, after which it is asked whether the partitions are there at all
_CONFIG: Mapping[str, object] = {
    "group.id": "headrace-reader",  # librdkafka wants one; nothing joins or commits
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "queued.max.messages.kbytes": 16 * 1024,
}
_Partition = TypeVar("_Partition", bound=Partition)


def read_ranges(
    bus: Bus,
    ranges: Mapping[_Partition, tuple[int, int]],
    *,
    timeout_s: float,
    isolation_level: str = READ_COMMITTED,
    is_stopped: Callable[[], bool] = bool,
    config: Mapping[str, object] | None = None,
) -> Iterator[list[Any]]:
    """Yield the messages of half-open ranges of offsets, a batch at a time, as librdkafka has them.

    A partition is done when its range is passed or its log ends, which may be before: markers of
    transactions and compacted messages leave gaps. Where the log begins later than the range,
    reading begins there. BusError when nothing comes for `timeout_s`, or at an error that does not
    pass; StoppedError when a stop was asked for.
    """
    pending = {
        (topic, number): end for (topic, number), (start, end) in ranges.items() if start < end
    }
    starts = {(topic, number): start for (topic, number), (start, _) in ranges.items()}
    if not pending:
        return
    # The isolation level is the caller's: a property of the user's may be for another purpose.
    reader = Bus(bus.bootstrap, {**bus.properties, ISOLATION_LEVEL: isolation_level}, bus.sources)
    more = {**_CONFIG, "auto.offset.reset": "earliest", **(config or {})}
    consumer = make_consumer(reader, more)
    try:
        with bus_errors():
            consumer.assign(places({each: starts[each] for each in pending}))
        heard_at = doubted_at = time.monotonic()
        while pending:
            if is_stopped():
                raise StoppedError
            with bus_errors():
                received = consumer.consume(_BATCH, _WAIT_S)
            now = time.monotonic()
            if received:
                heard_at = now
            elif now - heard_at >= timeout_s:
                raise _silence(bus, pending, timeout_s)
            elif now - max(heard_at, doubted_at) >= _DOUBT_S:
                _check_there(consumer, pending)
                doubted_at = time.monotonic()
            if batch := _take(received, pending):
                yield batch
                heard_at = time.monotonic()  # the caller's time is not the bus's
    finally:
        consumer.close()


def _take(received: list[Any], pending: dict[Partition, int]) -> list[Any]:
    batch = list[Any]()
    for message in received:
        place = message.topic(), message.partition()
        if (reason := message.error()) is not None:
            if is_end_of_partition(reason):
                pending.pop(place, None)
            elif not (error := error_of(reason)).is_passing and not reason.retriable():
                raise error
            continue
        if (end := pending.get(place)) is None:
            continue
        offset = message.offset()
        if offset < end:
            batch.append(message)
        if offset + 1 >= end:
            del pending[place]
    return batch


def _check_there(consumer: Any, pending: Mapping[Partition, int]) -> None:
    """BusError for a topic that is not there: librdkafka waits for it, and says nothing."""
    for topic in sorted({topic for topic, _ in pending}):
        try:
            with bus_errors():
                found = consumer.list_topics(topic, timeout=_DOUBT_S).topics[topic]
        except BusError as error:
            if error.is_passing:
                return  # nobody answers at all: that is for the caller's patience
            raise
        missing = [number for name, number in pending if name == topic]
        missing = [number for number in missing if number not in found.partitions]
        if found.error is not None and is_unknown(found.error):
            raise BusError(found.error, f"there is no topic {topic}", is_passing=False)
        if found.error is None and missing:
            sentence = f"topic {topic} has no partition {min(missing)}"
            raise BusError(None, sentence, is_passing=False)


def _silence(bus: Bus, pending: Mapping[Partition, int], timeout_s: float) -> BusError:
    topic, number = min(pending)
    return BusError(
        None,
        f"{bus.bootstrap} gave nothing of partition {number} of {topic} for {timeout_s:g} s; is "
        "its leader there? 'headrace topics describe' shows it",
        is_passing=True,
        is_timeout=True,
    )
