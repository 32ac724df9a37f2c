"""Records whose rows a sink refused, as dead letters have them, and the batch without them.

Whoever uses this writes the letters first: a crash in between then writes a letter twice, and
never loses a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.definition import ERROR_COLUMN
from headrace.pipelines.refusal import RefusedRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("topic", "partition", "offset")
_SCHEMA = f"topic string, partition int, offset bigint, {ERROR_COLUMN} string"


@dataclass(frozen=True)
class _AsTold:
    """Takes the place of a decoder where letters are explained: `_error` is the sentence."""

    can_fail: bool = True

    def describe(self) -> str:
        return "refused by a sink"

    def decode(self, records: "DataFrame") -> "DataFrame":
        return records

    def explain(self, value: bytes | None) -> str:
        return self.describe()

    def explain_error(self, error: str, value: bytes | None) -> str:
        return error


AS_TOLD = _AsTold()


def of(records: "DataFrame", refused: Sequence[RefusedRow]) -> "DataFrame":
    """The records that these rows were made from, each with why it was refused."""
    return records.join(_places(records, refused), list(_PLACE))


def without(records: "DataFrame", refused: Sequence[RefusedRow]) -> "DataFrame":
    """The records that none of these rows was made from."""
    return records.join(_places(records, refused), list(_PLACE), how="left_anti")


def _places(records: "DataFrame", refused: Sequence[RefusedRow]) -> "DataFrame":
    """One row a record: several rows of one record have one letter, with the first's reason."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    reasons = dict[tuple[str, int, int], str]()
    for row in refused:
        reasons.setdefault((row.topic, row.partition, row.offset), row.reason)
    frame = records.sparkSession.createDataFrame(
        [(*place, reason) for place, reason in reasons.items()], _SCHEMA
    )
    return F.broadcast(frame)
