from typing import Any

import pytest

from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.client.librdkafka import Partition
from headrace.client.partition_bounds import PartitionBounds
from headrace.client.positions import LATEST, OLDEST, Position, PositionKind

FIRST, SECOND, LEADERLESS = ("t", 0), ("t", 1), ("t", 2)


class KnownOffsets(Admin):
    """A bus with offsets 4 to 10 and 0 to 3; nobody leads the third partition."""

    def oldest_offsets(self, partitions: Any, *, is_partial: bool = False) -> Any:
        return {each: {FIRST: 4, SECOND: 0}[each] for each in partitions if each != LEADERLESS}

    def end_offsets(self, partitions: Any, *args: object, is_partial: bool = False) -> Any:
        return {each: {FIRST: 10, SECOND: 3}[each] for each in partitions if each != LEADERLESS}

    def offsets_at(self, time_ms: int, partitions: Any, *args: object, **more: object) -> Any:
        return {each: {FIRST: 7, SECOND: 3}[each] for each in partitions}


@pytest.mark.parametrize(
    ("position", "offsets"),
    [
        (OLDEST, {FIRST: 4, SECOND: 0}),
        (LATEST, {FIRST: 10, SECOND: 3}),
        (Position(PositionKind.OFFSET, 6), {FIRST: 6, SECOND: 6}),
        (Position(PositionKind.TIME, 1000), {FIRST: 7, SECOND: 3}),
        (Position(PositionKind.SHIFT, -2), {FIRST: 3, SECOND: 0}),
    ],
)
def test_a_position_is_an_offset_in_each_partition_that_is_led(
    position: Position, offsets: dict[Partition, int]
) -> None:
    bounds = PartitionBounds(KnownOffsets(Bus()), [FIRST, SECOND, LEADERLESS], is_partial=True)

    assert bounds.offsets_of(position, {FIRST: 5, SECOND: 2}) == offsets


def test_offsets_a_partition_does_not_have_are_brought_to_its_nearest_end() -> None:
    bounds = PartitionBounds(KnownOffsets(Bus()), [FIRST, SECOND])

    assert bounds.within({FIRST: 3, SECOND: 9, LEADERLESS: 1}) == {FIRST: 4, SECOND: 3}
