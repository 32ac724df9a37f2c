"""What positions mean in partitions: offsets between the first each still has and its end."""

from collections.abc import Iterable, Mapping

from headrace.client.admin import Admin
from headrace.client.librdkafka import Partition
from headrace.client.positions import Position, PositionKind


class PartitionBounds:
    """The first offset and the end of partitions, as they were when this was made.

    With `is_partial`, a partition that nobody leads now is left out of every answer.
    """

    def __init__(
        self, admin: Admin, partitions: Iterable[Partition], *, is_partial: bool = False
    ) -> None:
        wanted = list(partitions)
        self.oldest = admin.oldest_offsets(wanted, is_partial=is_partial)
        found = admin.end_offsets(wanted, is_partial=is_partial)
        self.end = {each: found[each] for each in self.oldest if each in found}
        self._admin = admin
        self._is_partial = is_partial

    def offsets_of(
        self, position: Position, shift_from: Mapping[Partition, int]
    ) -> dict[Partition, int]:
        """The offsets a position means, wherever they lie; a shift counts from `shift_from`."""
        match position.kind:
            case PositionKind.OLDEST:
                return {each: self.oldest[each] for each in self.end}
            case PositionKind.LATEST:
                return dict(self.end)
            case PositionKind.OFFSET:
                return dict.fromkeys(self.end, position.value)
            case PositionKind.TIME:
                return self._admin.offsets_at(position.value, self.end, is_partial=self._is_partial)
            case PositionKind.SHIFT:
                return {each: shift_from[each] + position.value for each in self.end}

    def within(self, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        """The nearest offsets that the partitions have, their ends included."""
        return {
            each: min(max(offset, self.oldest[each]), self.end[each])
            for each, offset in offsets.items()
            if each in self.end
        }
