"""What a position means in partitions: offsets, as the broker knows them."""

from collections.abc import Mapping

from headrace.cli.positions import Kind, Position
from headrace.client.admin import Admin

Partition = tuple[str, int]  # topic and partition


def resolve(
    admin: Admin, position: Position, current: Mapping[Partition, int]
) -> dict[Partition, int]:
    """The offsets a position means; a shift counts from `current`, whose keys are what is asked.

    Never outside of what the partition has: an offset before the first is the first.
    """
    oldest = admin.oldest_offsets(current, is_partial=True)
    if position.kind is Kind.OLDEST:
        return oldest
    end = admin.end_offsets(current, is_partial=True)
    if position.kind is Kind.LATEST:
        return end
    if position.kind is Kind.TIME:
        wanted = admin.offsets_at(position.value, current, is_partial=True)
    elif position.kind is Kind.OFFSET:
        wanted = dict.fromkeys(current, position.value)
    else:
        wanted = {partition: offset + position.value for partition, offset in current.items()}
    return {
        partition: min(max(wanted[partition], oldest[partition]), end[partition])
        for partition in current
        if partition in oldest and partition in end and partition in wanted
    }
