"""Rows that a sink cannot take: which records they are from, and why.

A sink says so before it writes anything of the batch. Whoever gave it the rows sets these records
aside, as dead letters, and gives it the rest: one row must not stop a pipeline for good.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.pipelines.errors import SinkError


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """The record that the row was made from; `reason` is a sentence for its dead letter."""

    topic: str
    partition: int
    offset: int
    reason: str


class RowsRefusedError(SinkError):
    """A sink takes the batch without these rows; nothing of it is written yet."""

    def __init__(self, sink: str, rows: Sequence[RefusedRow]) -> None:
        first = rows[0]
        more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
        super().__init__(
            f"{sink} cannot take the row of {first.topic}-{first.partition} at offset "
            f"{first.offset}{more}: {first.reason}"
        )
        self.rows = tuple(rows)
