"""One batch: records are decoded, transformed and written; what cannot be decoded is set aside.

A batch may come twice, after a crash or a restart, and one that comes from a checkpoint that was
put back may hold some records for the second time and others for the first. A sink is given what
it does not have; dead letters may be written twice, for the crash may have come before they were.
A row that a sink refuses is set aside like one that cannot be decoded.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.pipelines.definition import ERROR_COLUMN, Decoder, OpenSink, Pipeline, Run
from headrace.pipelines.errors import PipelineError, SinkError
from headrace.pipelines.refusal import RefusedRow, RowsRefusedError
from headrace.pipelines.running.row_count import RowCount, RowCounter
from headrace.pipelines.spans import Batch, Spans
from headrace.pipelines.spark.faults import Failure, failure_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Drift is looked for in the first batch and then this often: it costs a small job each time.
DRIFT_INTERVAL_S = 60.0


class StopRequestedError(PipelineError):
    """Keeps a batch from starting, because the run is to end."""


class BatchWriter:
    """What `foreachBatch` calls. Its figures may be read from other threads."""

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        *,
        dead_letter_topic: str | None,  # None: bad records are only counted
        is_stop_asked: Callable[[], bool],
        batch_of: Callable[[int], Batch] = Batch,
        log_file: Path | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._run = run
        self._batch_of = batch_of
        self._sinks: Sequence[OpenSink] = ()
        self._dead_letter_topic = dead_letter_topic
        self._is_stop_asked = is_stop_asked
        self._log_file = log_file
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
        self.failure: Failure | None = None

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
            self.write(records, self._batch_of(batch_id))
            # Asked again: a topic that was made anew while it was read must not count as read.
            self._batch_of(batch_id)
        except BaseException as error:
            # Spark wraps it in Java's words; the runner wants ours, and Java may be gone by then.
            self.failure = failure_of(error, self._log_file)
            raise
        finally:
            self.running_batch = self.running_since = None
        self.last_batch = batch_id

    def write(self, records: "DataFrame", batch: Batch, *, is_counting: bool = False) -> None:
        """Write one batch. `is_counting` counts rows even where nothing can be bad."""
        decoder = self._pipeline.decoder
        whole, parts = self._shares(batch)
        for sink, part in parts:
            self._write_part(records, batch, sink, part)
        is_counted = decoder.can_fail or is_counting
        counter = RowCounter(can_fail=decoder.can_fail) if is_counted else None
        is_written = bool(whole) and self._write_to(whole, records, counter, batch)
        is_repeated = bool(parts) or not is_written
        counted = counter.take() if counter and not is_repeated else None
        rows = None
        if counted and (not decoder.can_fail or _is_all(batch, counted.rows)):
            rows = counted.rows
        elif is_counted or is_repeated:
            # Spark's own count is of all passes over the batch together.
            rows = records.count()
        if rows is not None:
            self.rows_of_batch[batch.number] = rows
        if decoder.can_fail:
            self._set_aside(records, batch, counted if counted and counted.rows == rows else None)
            self._look_for_drift(records)
        for sink in self._sinks:
            sink.between_batches()

    def _shares(self, batch: Batch) -> tuple[list[OpenSink], list[tuple[OpenSink, Batch]]]:
        """The sinks that lack the whole batch, and those that lack a part, with that part."""
        left = [(sink, sink.written().left_of(batch)) for sink in self._sinks]
        parts = [(sink, part) for sink, part in left if part is not None and part is not batch]
        return [sink for sink, part in left if part is batch], parts

    def _rows(self, records: "DataFrame", counter: RowCounter | None = None) -> "DataFrame":
        """What sinks are given of these records."""
        decoder = self._pipeline.decoder
        decoded = decoder.decode(records)
        if counter is not None:
            decoded = counter.of(decoded)
        if decoder.can_fail:
            decoded = decoded.where(f"{ERROR_COLUMN} is null").drop(ERROR_COLUMN)
        return self._pipeline.transform(decoded)

    def _write_to(
        self,
        sinks: Sequence[OpenSink],
        records: "DataFrame",
        counter: RowCounter | None,
        batch: Batch,
    ) -> bool:
        """Return whether all of `self._sinks` had none of it and have it now."""
        rows = self._rows(records, counter)
        is_kept = len(sinks) > 1
        if is_kept:
            rows.persist()
        try:
            is_new = [self._give(sink, records, rows, batch) for sink in sinks]
        finally:
            if is_kept:
                rows.unpersist()
        return all(is_new) and len(sinks) == len(self._sinks)

    def _write_part(self, records: "DataFrame", batch: Batch, sink: OpenSink, part: Batch) -> None:
        """Write what one sink lacks: the batch was planned otherwise when it was written."""
        assert batch.holds is not None
        assert part.holds is not None
        lacked = without(records, batch.holds - part.holds)
        self._give(sink, lacked, self._rows(lacked), part)
        self._run.tell(
            f"batch {batch.number} holds records that were written before the checkpoint was "
            f"changed or put back; only the others were written now"
        )

    def _give(self, sink: OpenSink, records: "DataFrame", rows: "DataFrame", batch: Batch) -> bool:
        """Let a sink write `rows`, made from `records`, without those it refuses."""
        told = set[RefusedRow]()
        while True:
            try:
                return sink.write(rows, batch)
            except RowsRefusedError as refusal:
                if told.issuperset(refusal.rows):
                    # No record to leave out: the row says no place, or another's.
                    raise SinkError(str(refusal)) from None
                told.update(refusal.rows)
                from headrace.pipelines.running import refused_rows

                self.dead_letters += self._send(
                    refused_rows.AS_TOLD, refused_rows.of(records, refusal.rows), batch
                )
                records = refused_rows.without(records, refusal.rows)
                rows = self._rows(records)

    def _set_aside(self, records: "DataFrame", batch: Batch, counted: RowCount | None) -> None:
        """Write the dead letters. Nothing counted means that any may be bad.

        A transform or a sink that wants only some rows ends its pass early, and what did not pass
        was not looked at. A look costs a pass; a loss is for good.
        """
        if counted is not None and not counted.bad:
            return
        written = self._write_letters(counted.suspects(records) if counted else records, batch)
        if counted and written < counted.bad:
            # A decoder that tells another place of its rows than they have.
            written = self._write_letters(records, batch)
        self.dead_letters += written

    def _write_letters(self, records: "DataFrame", batch: Batch) -> int:
        from headrace.pipelines.dead_letters import writing

        decoder = self._pipeline.decoder
        return self._send(decoder, writing.bad_records(decoder, records), batch)

    def _send(self, decoder: Decoder, bad: "DataFrame", batch: Batch) -> int:
        """Write dead letters; a trial only counts and tells them."""
        from headrace.pipelines.dead_letters import writing

        if self._dead_letter_topic is not None:
            return writing.write(self._run, decoder, bad, self._dead_letter_topic, batch)
        if number := bad.count():
            self._run.tell(
                f"batch {batch.number}: {number:,} bad records left out; a run that writes "
                "elsewhere than to the console sends them to its dead letters"
            )
        return number

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


def _is_all(batch: Batch, rows: int | None) -> bool:
    """Whether so many rows must be the whole batch; fewer are one too where offsets are missing."""
    return batch.holds is not None and rows == batch.holds.size


def without(records: "DataFrame", spans: Spans) -> "DataFrame":
    """The records that are none of these, in their order."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    # A join: a condition over thousands of partitions is too deep for Spark.
    ranges = records.sparkSession.createDataFrame(
        [(log.topic, log.partition, start, end) for log, (start, end) in spans],
        "_topic string, _partition int, _start bigint, _end bigint",
    )
    is_one = (
        (F.col("topic") == F.col("_topic"))
        & (F.col("partition") == F.col("_partition"))
        & (F.col("offset") >= F.col("_start"))
        & (F.col("offset") < F.col("_end"))
    )
    return records.join(F.broadcast(ranges), is_one, "left_anti")
