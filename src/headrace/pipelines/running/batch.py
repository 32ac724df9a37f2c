"""One batch: records are decoded, transformed and written; what cannot be decoded is set aside.

A batch may come twice, after a crash or a restart. Sinks know it by its number and change
nothing the second time; dead letters may then be written twice, for the crash may have come
before they were.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import PipelineError
from headrace.pipelines.definition import ERROR_COLUMN, OpenSink, Pipeline, Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

# Drift is looked for in the first batch and then this often: it costs a small job each time.
DRIFT_INTERVAL_S = 60.0
# Spark hands the counts of a finished job over within milliseconds. A job that counted nothing
# (its sink needed no row) never does.
_COUNTS_TIMEOUT_S = 2.0
_COUNTS_PAUSE_S = 0.005
_ROWS, _BAD = "rows", "bad"


class StopRequestedError(PipelineError):
    """Keeps a batch from starting, because the run is to end."""


class BatchWriter:
    """What `foreachBatch` calls. Its figures may be read from other threads."""

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        *,
        dead_letter_topic: str,
        is_stop_asked: Callable[[], bool],
    ) -> None:
        self._pipeline = pipeline
        self._run = run
        self._sinks: Sequence[OpenSink] = ()
        self._dead_letter_topic = dead_letter_topic
        self._is_stop_asked = is_stop_asked
        self._drift_told = set[str]()
        self._drift_at: float | None = None
        self.dead_letters = 0
        self.running_batch: int | None = None
        self.running_since: float | None = None  # wall clock, seconds
        self.last_batch: int | None = None
        # Rows of a batch, where they were counted, until somebody takes them out.
        self.rows_of_batch = dict[int, int]()
        self.is_refusing = False
        self._is_over = False
        self.failure: BaseException | None = None

    def begin(self, sinks: Sequence[OpenSink]) -> None:
        """Write to these from now on: a query starts, for the first time or again."""
        self._sinks = sinks
        self.last_batch = self.failure = None
        self.is_refusing = False

    def close(self) -> None:
        """Refuse every batch from now on: a query that could not be stopped may still bring one."""
        self._is_over = True

    @property
    def drift_reports(self) -> int:
        """How many differences from the schema were told."""
        return len(self._drift_told)

    def __call__(self, records: "DataFrame", batch_id: int) -> None:
        """Write one batch, unless the run is to end."""
        if self._is_stop_asked() or self._is_over:
            self.is_refusing = True
            raise StopRequestedError("the run ends; the batch is left to the next")
        self.running_since = time.time()
        self.running_batch = batch_id
        try:
            self.write(records, batch_id)
        except BaseException as error:
            # Spark wraps it in Java's words; the runner wants ours.
            self.failure = error
            raise
        finally:
            self.running_batch = self.running_since = None
        self.last_batch = batch_id

    def write(self, records: "DataFrame", batch_id: int, *, is_counting: bool = False) -> None:
        """Write one batch. `is_counting` counts rows even where nothing can be bad."""
        decoder = self._pipeline.decoder
        decoded = decoder.decode(records)
        counts = None
        if decoder.can_fail or is_counting:
            decoded, counts = _counting(decoded, can_fail=decoder.can_fail)
        if decoder.can_fail:
            decoded = decoded.where(f"{ERROR_COLUMN} is null").drop(ERROR_COLUMN)
        rows = self._pipeline.transform(decoded)
        is_repeated = self._write_to_sinks(rows, batch_id)
        counted = None if is_repeated else _take(counts)
        if counted is not None:
            self.rows_of_batch[batch_id] = counted[_ROWS]
        elif is_repeated or decoder.can_fail or is_counting:
            # Rare, and Spark's own count is of all passes over the batch together.
            self.rows_of_batch[batch_id] = records.count()
        if decoder.can_fail:
            # Not counted means that they may be there: a look costs one pass, a loss is for good.
            if counted is None or counted[_BAD]:
                self._set_aside(records)
            self._look_for_drift(records)
        for sink in self._sinks:
            sink.between_batches()

    def _write_to_sinks(self, rows: "DataFrame", batch_id: int) -> bool:
        """Return whether some sink had the batch already."""
        is_kept = len(self._sinks) > 1
        if is_kept:
            rows.persist()
        try:
            is_new = [sink.write(rows, batch_id) for sink in self._sinks]
        finally:
            if is_kept:
                rows.unpersist()
        return not all(is_new)

    def _set_aside(self, records: "DataFrame") -> None:
        from headrace.pipelines import dead_letters

        decoder = self._pipeline.decoder
        bad = dead_letters.bad_records(decoder, records)
        self.dead_letters += dead_letters.write(self._run, decoder, bad, self._dead_letter_topic)

    def _look_for_drift(self, records: "DataFrame") -> None:
        from headrace.pipelines.decoders.drift import report_drift

        now = time.monotonic()
        if self._drift_at is not None and now - self._drift_at < DRIFT_INTERVAL_S:
            return
        self._drift_at = now
        for sentence in report_drift(self._pipeline.decoder, records):
            if sentence not in self._drift_told:
                self._drift_told.add(sentence)
                self._run.tell(sentence)


def _counting(decoded: "DataFrame", *, can_fail: bool) -> tuple["DataFrame", "Observation"]:
    """Count rows, and bad ones, in the same pass that writes them."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    observation = Observation()
    error = F.col(ERROR_COLUMN) if can_fail else F.lit(None)
    counted = decoded.observe(
        observation, F.count(F.lit(1)).alias(_ROWS), F.count(error).alias(_BAD)
    )
    return counted, observation


def _take(observation: "Observation | None") -> dict[str, Any] | None:
    """The counts, or None if there are none to be had."""
    if observation is None:
        return None
    java: Any = observation._jo
    future = java.future()
    deadline = time.monotonic() + _COUNTS_TIMEOUT_S
    while not future.isCompleted():
        if time.monotonic() >= deadline:
            return None
        time.sleep(_COUNTS_PAUSE_S)
    return dict(observation.get)
