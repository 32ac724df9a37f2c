"""A few records of a topic, the first and the last of each partition, read by librdkafka.

They are looked at before Spark reads the topic, to find out what its values are.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client.bus import Bus
from headrace.pipelines.errors import SourceError
from headrace.pipelines.topic_positions import Partition

# Enough to see the fields that are not in every record; a partition has at least a few.
SAMPLE_RECORDS = 400
_LEAST_PER_PARTITION = 5
_TIMEOUT_S = 15.0
_POLL_S = 0.5


@dataclass(frozen=True)
class Sample:
    """What was seen. `has_broker_times`: every record was stamped by the broker."""

    values: tuple[bytes, ...]
    has_broker_times: bool

    def objects(self) -> list[dict[str, object]]:
        """Those values that are JSON objects."""
        found = list[dict[str, object]]()
        for value in self.values:
            try:
                parsed = json.loads(value)
            except (ValueError, RecursionError):  # bytes that are no UTF-8 are a ValueError too
                continue
            if isinstance(parsed, dict):
                found.append(parsed)
        return found

    @property
    def is_text(self) -> bool:
        """Whether all values are UTF-8 without the zero bytes of binary formats."""
        try:
            return all(b"\0" not in value and value.decode() is not None for value in self.values)
        except UnicodeDecodeError:
            return False


def take_sample(bus: Bus, ranges: Mapping[Partition, tuple[int, int]]) -> Sample:
    """Read the first and last records of these half-open ranges."""
    from confluent_kafka import Consumer, KafkaException

    held = {each: bounds for each, bounds in ranges.items() if bounds[0] < bounds[1]}
    if not held:
        return Sample((), has_broker_times=False)
    count = max(SAMPLE_RECORDS // (2 * len(held)), _LEAST_PER_PARTITION)
    first = {each: (start, min(start + count, end)) for each, (start, end) in held.items()}
    last = {
        each: (max(end - count, first[each][1]), end)
        for each, (_, end) in held.items()
        if first[each][1] < end
    }
    config = {
        "group.id": "headrace-sample",  # wanted by librdkafka; nothing joins or commits
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    try:
        consumer = Consumer(bus.client_config(config))
        try:
            messages = [*_read(consumer, first), *_read(consumer, last)]
        finally:
            consumer.close()
    except KafkaException as error:
        raise SourceError(f"{bus.bootstrap}: {error.args[0].str()}") from error
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

    return Sample(
        tuple(each.value() for each in messages if each.value() is not None),
        has_broker_times=bool(messages)
        and all(each.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME for each in messages),
    )


def _read(consumer: Any, ranges: Mapping[Partition, tuple[int, int]]) -> list[Any]:
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

    if not ranges:
        return []
    consumer.assign([TopicPartition(*each, start) for each, (start, _) in ranges.items()])
    pending = {each: end for each, (_, end) in ranges.items()}
    found = list[Any]()
    deadline = time.monotonic() + _TIMEOUT_S
    while pending and time.monotonic() < deadline:
        message = consumer.poll(_POLL_S)
        if message is None:
            continue
        partition = (message.topic(), message.partition())
        if message.error() is not None:
            if message.error().code() != KafkaError._PARTITION_EOF:
                raise KafkaException(message.error())
            pending.pop(partition, None)
            continue
        if partition not in pending:
            continue
        if message.offset() < pending[partition]:
            found.append(message)
        # Markers of transactions and compacted records leave gaps: pass, not meet, the end.
        if message.offset() >= pending[partition] - 1:
            del pending[partition]
    if pending:
        topic, number = next(iter(pending))
        raise SourceError(
            f"partition {number} of {topic} gave no records within {_TIMEOUT_S:g} s; "
            "is its leader there? 'headrace topics describe' shows it"
        )
    return found
