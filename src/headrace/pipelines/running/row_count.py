"""How many records passed and which of them were bad, counted in the pass that writes them.

The bad ones are kept as a bitmap over a hash of their places: it has one size however many they
are, and in it nobody who is bad is missing, while of the good ones few are in. So the second
reading, for the dead letters, decodes those that are in it and no others.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.patience import Patience
from headrace.pipelines.definition import ERROR_COLUMN, RECORD_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark hands the counts of a finished job over within milliseconds. A job that counted nothing
# (its sink needed no row) never does.
_TIMEOUT_S = 2.0
_PAUSE_S = 0.005
_ROWS, _BAD, _BITS = "rows", "bad", "bits"
_BUCKETS = 32_768  # the size of Spark's bitmaps
_WORD_BITS, _WORD_BYTES = 64, 8


@dataclass(frozen=True, slots=True)
class RowCount:
    """What a pass has seen."""

    rows: int
    bad: int
    bits: bytes = b""

    def suspects(self, records: "DataFrame") -> "DataFrame":
        """Those of the records that may be bad, the bad ones all among them."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

        words = [
            int.from_bytes(self.bits[start : start + _WORD_BYTES], "little", signed=True)
            for start in range(0, len(self.bits), _WORD_BYTES)
        ]
        bucket = _bucket("")
        # Said to be long: words that are all small would be taken for integers, of half the bits.
        table = F.lit(words).cast("array<bigint>")
        word = F.element_at(table, F.expr(f"cast({bucket} div {_WORD_BITS} as int) + 1"))
        bit = F.expr(f"cast({bucket} % {_WORD_BITS} as int)")
        return records.where(F.getbit(word, bit) == 1)


class RowCounter:
    """Counts one pass over decoded rows."""

    def __init__(self, *, can_fail: bool) -> None:
        from pyspark.sql import Observation

        self._can_fail = can_fail
        self._observation = Observation()

    def of(self, decoded: "DataFrame") -> "DataFrame":
        """The same rows, counted as they pass."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

        figures = [F.count(F.lit(1)).alias(_ROWS)]
        if self._can_fail:
            bucket = _bucket(f"{RECORD_COLUMN}.")
            bits = f"bitmap_construct_agg(if({ERROR_COLUMN} is null, null, {bucket}))"
            figures += [F.count(F.col(ERROR_COLUMN)).alias(_BAD), F.expr(bits).alias(_BITS)]
        return decoded.observe(self._observation, *figures)

    def take(self) -> RowCount | None:
        """What the pass has counted; None if there was none."""
        from py4j.protocol import Py4JJavaError

        java: Any = self._observation._jo
        future = java.future()
        patience = Patience(_TIMEOUT_S, first_pause_s=_PAUSE_S, longest_pause_s=_PAUSE_S)
        if not patience.until(future.isCompleted):
            return None
        try:
            found = self._observation.get
        except Py4JJavaError:  # of a plan that was found to give no rows: done, and without figures
            return None
        return RowCount(found[_ROWS], found.get(_BAD, 0), bytes(found.get(_BITS, b"")))


def _bucket(of: str) -> str:
    """SQL for the bucket of a record, from its place."""
    place = f"cast({of}topic as string), cast({of}partition as int), cast({of}offset as bigint)"
    return f"pmod(xxhash64({place}), {_BUCKETS})"
