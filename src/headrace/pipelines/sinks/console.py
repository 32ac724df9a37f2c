"""Rows on stdout, one JSON object a line: to look at a pipeline before it writes anywhere.

Bytes are shown as text where they are UTF-8, else as base64. A replayed batch is printed again.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.pipelines.definition import OpenSink, Run, Sink
from headrace.pipelines.errors import PipelineDefinitionError, SinkError
from headrace.pipelines.spans import Batch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Nobody reads more than this of a batch.
DEFAULT_MAX_ROWS = 1000
# monotonically_increasing_id has the place within the task in its lower bits.
_PLACE_BITS = (1 << 33) - 1
_SCHEME = "console:"


class NobodyReadsError(SinkError):
    """Whoever read the output has read enough, as `head` does: the run is over."""


@dataclass(frozen=True)
class Console(Sink):
    """Prints at most `max_rows` of a batch and says how many more there were."""

    max_rows: int = DEFAULT_MAX_ROWS

    def describe(self) -> str:
        """A few words for people."""
        return "the console"

    @property
    def is_trial(self) -> bool:
        """What was shown is not kept anywhere."""
        return True

    def open(self, run: Run) -> OpenSink:
        """Nothing to connect to."""
        return _OpenConsole(self.max_rows, run)


class _OpenConsole(OpenSink):
    def __init__(self, max_rows: int, run: Run) -> None:
        self._max_rows = max_rows
        self._run = run

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Print the first rows, in the order in which the batch has them."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

        # Every row passes, so that whoever counts counts all, and only the first are collected:
        # a limit would end the job before the rest was decoded.
        counted = Observation()
        fields = [shown(each.name, each.dataType) for each in rows.schema.fields]
        place = F.expr(f"monotonically_increasing_id() & {_PLACE_BITS}")
        lines = (
            rows.observe(counted, F.count(F.lit(1)).alias("rows"))
            .select(F.to_json(F.struct(*fields)).alias("line"), place.alias("place"))
            .where(F.col("place") < self._max_rows)
            .collect()[: self._max_rows]
        )
        _print(row.line for row in lines)
        # Without a line there was no row, and Spark may have left the counting out.
        total = counted.get["rows"] if lines else 0
        if total > len(lines):
            self._run.tell(
                f"batch {batch.number}: the first {len(lines):,} of {total:,} rows printed"
            )
        return True


def _print(lines: Iterable[str]) -> None:
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        raise NobodyReadsError("nobody reads the output any more") from None


def shown(name: str, kind: Any) -> "Column":
    """A column as JSON shows it: bytes as text where they are text."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import BinaryType

    column = F.col(f"`{name.replace('`', '``')}`")
    if isinstance(kind, BinaryType):
        text = column.cast("string")
        column = F.when(F.is_valid_utf8(text), text).otherwise(F.base64(column))
    return column.alias(name)


def from_uri(uri: str, options: Mapping[str, str]) -> Console:
    """`console:`, or `console:20` for twenty rows of each batch."""
    text = uri[len(_SCHEME) :].strip("/")
    if not text:
        return Console()
    if not text.isdecimal() or not int(text):
        raise PipelineDefinitionError(
            f"sink {uri}: write {_SCHEME} or {_SCHEME}20 for the first twenty rows of each batch"
        )
    return Console(int(text))
