"""A few records of a topic, the first and the last of each partition, read by librdkafka.

They are looked at before Spark reads the topic, to find out what its values are.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition
from headrace.client.ranges import read_ranges
from headrace.pipelines.errors import SourceError

# Enough to see the fields that are not in every record; a partition has at least a few.
SAMPLE_RECORDS = 400
_LEAST_PER_PARTITION = 5
_TIMEOUT_S = 15.0
_LOG_APPEND_TIME = 2  # librdkafka's number of it


@dataclass(frozen=True)
class TopicSample:
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


def take_sample(bus: Bus, ranges: Mapping[Partition, tuple[int, int]]) -> TopicSample:
    """Read the first and last records of these half-open ranges."""
    held = {each: bounds for each, bounds in ranges.items() if bounds[0] < bounds[1]}
    if not held:
        return TopicSample((), has_broker_times=False)
    count = max(SAMPLE_RECORDS // (2 * len(held)), _LEAST_PER_PARTITION)
    first = {each: (start, min(start + count, end)) for each, (start, end) in held.items()}
    last = {
        each: (max(end - count, first[each][1]), end)
        for each, (_, end) in held.items()
        if first[each][1] < end
    }
    try:
        messages = [*_read(bus, first), *_read(bus, last)]
    except BusError as error:
        raise SourceError(f"{bus.bootstrap}: {error}") from error
    return TopicSample(
        tuple(each.value() for each in messages if each.value() is not None),
        has_broker_times=bool(messages)
        and all(each.timestamp()[0] == _LOG_APPEND_TIME for each in messages),
    )


def _read(bus: Bus, ranges: Mapping[Partition, tuple[int, int]]) -> list[Any]:
    batches = read_ranges(bus, ranges, timeout_s=_TIMEOUT_S, isolation_level=bus.isolation_level)
    return [message for batch in batches for message in batch]
