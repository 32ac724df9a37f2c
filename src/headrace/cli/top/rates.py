"""Rates from two snapshots of a cluster: messages into topics, messages groups have passed.

Only what both have is compared: a topic, partition or group that came or went between them
has no rate yet, and an offset that went back (a reset, a topic made anew) counts as no messages.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.cli.top.snapshot import ClusterSnapshot
from headrace.client.librdkafka import Partition


class TopicRate(NamedTuple):
    """One topic; None: not known, or not yet."""

    topic: str
    partitions: int
    messages_per_s: float | None
    bytes_per_s: float | None
    size_bytes: int | None


class GroupRate(NamedTuple):
    """One group; its rate is how fast its committed offsets move."""

    group: str
    state: str
    members: int
    messages_per_s: float | None
    lag: int | None


def topic_rates(before: ClusterSnapshot, after: ClusterSnapshot) -> list[TopicRate]:
    """Every topic there is now, the busiest first."""
    seconds = after.at_s - before.at_s
    numbers = defaultdict[str, list[Partition]](list)
    for partition in after.ends:
        numbers[partition[0]].append(partition)
    rates = [
        TopicRate(
            topic,
            len(partitions),
            _rate(before.ends, after.ends, partitions, seconds),
            _growth(before.sizes_bytes, after.sizes_bytes, partitions, seconds),
            _total(after.sizes_bytes, partitions),
        )
        for topic, partitions in numbers.items()
    ]
    return sorted(rates, key=lambda each: (-(each.messages_per_s or 0), each.topic))


def group_rates(before: ClusterSnapshot, after: ClusterSnapshot) -> list[GroupRate]:
    """Every group there is now, the furthest behind first."""
    seconds = after.at_s - before.at_s
    rates = list[GroupRate]()
    for name, group in after.groups.items():
        former = before.groups.get(name)
        committed = {} if former is None else former.committed
        lags = [
            max(after.ends[partition] - offset, 0)
            for partition, offset in group.committed.items()
            if partition in after.ends
        ]
        rates.append(
            GroupRate(
                name,
                group.state,
                group.members,
                _rate(committed, group.committed, group.committed, seconds),
                sum(lags) if lags else None,
            )
        )
    return sorted(rates, key=lambda each: (-(each.lag or 0), each.group))


def _rate(
    before: Mapping[Partition, int],
    after: Mapping[Partition, int],
    partitions: Iterable[Partition],
    seconds: float,
) -> float | None:
    moved = [max(after[each] - before[each], 0) for each in partitions if each in before]
    return sum(moved) / seconds if moved else None


def _growth(
    before: Mapping[Partition, int],
    after: Mapping[Partition, int],
    partitions: Iterable[Partition],
    seconds: float,
) -> float | None:
    """Bytes a second; None when retention took some away, which hides what came in."""
    grown = [after[each] - before[each] for each in partitions if each in before and each in after]
    return sum(grown) / seconds if grown and min(grown) >= 0 else None


def _total(sizes_bytes: Mapping[Partition, int], partitions: Iterable[Partition]) -> int | None:
    sizes = [sizes_bytes[each] for each in partitions if each in sizes_bytes]
    return sum(sizes) if sizes else None
