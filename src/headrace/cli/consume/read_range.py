"""What `headrace consume` reads of each partition: from which offset, up to which.

Bounds are half-open. An end may lie ahead of what there is only for whoever follows; a time that
nothing has reached yet stays a time, and each record is held against it.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from headrace.cli.connection import Connection
from headrace.cli.offsets import Partition
from headrace.cli.positions import Kind, Position
from headrace.cli.terminal import CommandError
from headrace.client.admin import Admin

if TYPE_CHECKING:
    from confluent_kafka import Consumer

ENDLESS = sys.maxsize


class Ends(NamedTuple):
    """Where reading stops: at an offset of each partition, or at a record of this time."""

    offsets: dict[Partition, int]
    until_ms: int | None = None


def find_partitions(
    connection: Connection,
    consumer: "Consumer",
    topics: Iterable[str],
    numbers: Iterable[int] | None,
) -> list[Partition]:
    """The partitions of the topics, all or those with these numbers; all of them are there."""
    found = list[Partition]()
    for topic in dict.fromkeys(topics):
        known = consumer.list_topics(topic, connection.timeout_s).topics[topic]
        if known.error is not None and known.error.code() != known.error.UNKNOWN_TOPIC_OR_PART:
            raise CommandError(f"topic {topic}: {known.error.str()}")
        if known.error is not None or not known.partitions:
            raise unknown_topic(topic)
        wanted = sorted(known.partitions) if numbers is None else list(dict.fromkeys(numbers))
        for number in wanted:
            if number not in known.partitions:
                last = len(known.partitions) - 1
                raise CommandError(f"topic {topic} has no partition {number}, only 0 to {last}")
            found.append((topic, number))
    return found


def unknown_topic(topic: str) -> CommandError:
    """The error for a topic that is not there, or is no longer."""
    return CommandError(f"there is no topic {topic}; 'headrace topics list' names those there are")


class Offsets:
    """Turns positions into offsets of these partitions, as they were when it was made."""

    def __init__(self, admin: Admin, partitions: Iterable[Partition]) -> None:
        self._admin = admin
        self._partitions = list(partitions)
        self._oldest = admin.oldest_offsets(self._partitions)
        self._end = admin.end_offsets(self._partitions)

    def starts(
        self, position: Position, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, int]:
        """Where to begin, in all or in these; CommandError for an offset that one does not have.

        A partition that was made since begins at 0.
        """
        if partitions is None:
            return self._starts(position, self._partitions)
        wanted = list(partitions)
        known = [each for each in wanted if each in self._partitions]
        return dict.fromkeys(wanted, 0) | (self._starts(position, known) if known else {})

    def _starts(self, position: Position, partitions: list[Partition]) -> dict[Partition, int]:
        if position.kind is Kind.OFFSET:
            starts = dict.fromkeys(partitions, position.value)
            self._check(starts)
            return starts
        if position.kind is Kind.SHIFT and position.value >= 0:
            wanted = self._shifted(self._oldest, position.value)
        else:
            wanted = self._wanted(position)
        return {
            each: min(max(wanted[each], self._oldest[each]), self._end[each]) for each in partitions
        }

    def ends(self, position: Position | None, *, is_following: bool) -> Ends:
        """Where to stop: at `position`; without one where things end now, or never."""
        if position is None:
            return Ends(dict.fromkeys(self._partitions, ENDLESS) if is_following else self._end)
        wanted = self._wanted(position)
        if not is_following:
            return Ends({each: min(wanted[each], self._end[each]) for each in self._partitions})
        if position.kind is not Kind.TIME:
            return Ends(wanted)
        # Where nothing is as late yet, what comes next has to be held against the time itself.
        passed = {each: end for each, end in wanted.items() if end < self._end[each]}
        return Ends(dict.fromkeys(self._partitions, ENDLESS) | passed, position.value)

    def _check(self, offsets: Mapping[Partition, int]) -> None:
        for partition, offset in offsets.items():
            oldest, end = self._oldest[partition], self._end[partition]
            if not oldest <= offset <= end:
                topic, number = partition
                raise CommandError(
                    f"--from {offset} is out of range: partition {number} of {topic} "
                    f"has offsets {oldest} up to {end}"
                )

    def _wanted(self, position: Position) -> dict[Partition, int]:
        if position.kind is Kind.OLDEST:
            return self._oldest
        if position.kind is Kind.OFFSET:
            return dict.fromkeys(self._partitions, position.value)
        if position.kind is Kind.TIME:
            return self._admin.offsets_at(position.value, self._partitions)
        return self._shifted(self._end, position.value)  # latest is a shift by nothing

    def _shifted(self, base: Mapping[Partition, int], by: int) -> dict[Partition, int]:
        return {partition: offset + by for partition, offset in base.items()}
