"""What `headrace consume` reads of each partition: from which offset, up to which.

Bounds are half-open. An end may lie ahead of what there is only for whoever follows; a time that
nothing has reached yet stays a time, and each record is held against it.
"""

import sys
from collections.abc import Iterable
from typing import NamedTuple

from headrace.cli.endings import CommandError
from headrace.client.admin import Admin
from headrace.client.librdkafka import Partition
from headrace.client.partition_bounds import PartitionBounds
from headrace.client.positions import Position, PositionKind

ENDLESS = sys.maxsize


class Ends(NamedTuple):
    """Where reading stops: at an offset of each partition, or at a record of this time."""

    offsets: dict[Partition, int]
    until_ms: int | None = None


class ReadRange:
    """Turns --from and --to into offsets of these partitions, as they were when it was made."""

    def __init__(self, admin: Admin, partitions: Iterable[Partition]) -> None:
        self._bounds = PartitionBounds(admin, partitions)

    def starts(
        self, position: Position, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, int]:
        """Where to begin, in all or in these; CommandError for an offset that one does not have.

        A partition that was made since begins at 0.
        """
        oldest, end = self._bounds.oldest, self._bounds.end
        chosen = list(end if partitions is None else partitions)
        known = [each for each in chosen if each in end]
        if position.kind is PositionKind.OFFSET:
            for topic, number in known:
                first, last = oldest[topic, number], end[topic, number]
                if not first <= position.value <= last:
                    raise CommandError(
                        f"--from {position.value} is out of range: partition {number} of {topic} "
                        f"has offsets {first} up to {last}"
                    )
        wanted = self._wanted(position, is_start=True) if known else {}
        starts = self._bounds.within({each: wanted[each] for each in known})
        return dict.fromkeys(chosen, 0) | starts

    def ends(self, position: Position | None, *, is_following: bool) -> Ends:
        """Where to stop: at `position`; without one where things end now, or never."""
        end = self._bounds.end
        if position is None:
            return Ends(dict.fromkeys(end, ENDLESS) if is_following else end)
        wanted = self._wanted(position)
        if not is_following:
            return Ends({each: min(wanted[each], end[each]) for each in end})
        if position.kind is not PositionKind.TIME:
            return Ends(wanted)
        # Where nothing is as late yet, what comes next has to be held against the time itself.
        passed = {each: offset for each, offset in wanted.items() if offset < end[each]}
        return Ends(dict.fromkeys(end, ENDLESS) | passed, position.value)

    def _wanted(self, position: Position, *, is_start: bool = False) -> dict[Partition, int]:
        # A start some messages on counts from the first, all else from the end.
        is_from_oldest = is_start and position.value >= 0
        return self._bounds.offsets_of(
            position, self._bounds.oldest if is_from_oldest else self._bounds.end
        )
