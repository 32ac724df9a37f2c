"""From what can matter to a query to the offsets it has to read.

A lower bound of time is exact: the broker names the first record that is not older, so all before
it are older. An upper one is not, since producers stamp records in any order; it cuts the end only
where the broker stamps them, with a margin for a clock that was set back.
"""

from headrace.client.librdkafka import Partition
from headrace.pipelines.source import OffsetRanges
from headrace.pipelines.sql_query.bounds import Alternatives, RecordBounds
from headrace.pipelines.topic_positions import TopicPositions

# Wider than what NTP corrects in one step, and than a query takes from its first plan to its last.
UPPER_MARGIN_MS = 300_000


def narrow(
    positions: TopicPositions,
    whole: OffsetRanges,
    alternatives: Alternatives,
    *,
    has_broker_times: bool,
) -> OffsetRanges:
    """The offsets of one topic that any of the alternatives may have, as one range a partition."""
    times = _Times(positions, list(whole))
    narrowed = OffsetRanges()
    for partition, (first, end) in whole.items():
        parts = [
            _range(times, partition, (first, end), bounds, has_broker_times=has_broker_times)
            for bounds in alternatives
            if bounds.partitions is None or partition[1] in bounds.partitions
        ]
        held = [(low, high) for low, high in parts if low < high]
        if held:
            narrowed[partition] = (min(low for low, _ in held), max(high for _, high in held))
        else:
            narrowed[partition] = (first, first)
    return narrowed


def _range(
    times: "_Times",
    partition: Partition,
    whole: tuple[int, int],
    bounds: RecordBounds,
    *,
    has_broker_times: bool,
) -> tuple[int, int]:
    low, high = whole
    if bounds.from_offset is not None:
        low = max(low, bounds.from_offset)
    if bounds.to_offset is not None:
        high = min(high, bounds.to_offset + 1)
    if bounds.from_ms is not None:
        low = max(low, times.first_at(bounds.from_ms, partition))
    if bounds.to_ms is not None and has_broker_times:
        high = min(high, times.first_at(bounds.to_ms + 1 + UPPER_MARGIN_MS, partition))
    return low, high


class _Times:
    """Offsets by time, each time asked for once for all partitions."""

    def __init__(self, positions: TopicPositions, partitions: list[Partition]) -> None:
        self._positions = positions
        self._partitions = partitions
        self._known = dict[int, dict[Partition, int]]()

    def first_at(self, time_ms: int, partition: Partition) -> int:
        if time_ms not in self._known:
            self._known[time_ms] = self._positions.at(time_ms, self._partitions)
        return self._known[time_ms][partition]
