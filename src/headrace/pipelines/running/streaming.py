"""The query of a run: started, followed, started again after what can pass, ended in order.

The main thread follows the query and speaks to people; batches are written by a thread that
Spark calls. A query that failed is started again from its checkpoint, in the same session.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headrace.client.bus import Bus
from headrace.patience import Patience, StoppedError
from headrace.pipelines.definition import Pipeline, Run
from headrace.pipelines.errors import SourceError
from headrace.pipelines.running import run_state
from headrace.pipelines.running.batch import BatchWriter
from headrace.pipelines.running.bus_watch import BusWatch
from headrace.pipelines.running.java_bus import JavaBus
from headrace.pipelines.running.positions import GroupPositions
from headrace.pipelines.running.reporting import Reporter
from headrace.pipelines.running.settings import FIRST_BACK_OFF_S, MOST_BACK_OFF_S, RunSettings
from headrace.pipelines.running.source_logs import SourceLogs
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spark.faults import Failure, failure_of
from headrace.pipelines.topic_positions import BusSilentError

_POLL_S = 0.25
# A stream that is interrupted ends at once, unless Java itself hangs, as it does while it waits
# for a broker that is away.
_STOP_TIMEOUT_S = 30.0
_STOP_WITHOUT_BUS_TIMEOUT_S = 3.0
# A cluster that has just come back may for a while know no topics and no leaders.
_RECOVERY_S = 60.0


class StreamingRun:
    """All queries of one run, one after the other."""

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        settings: RunSettings,
        *,
        writer: BatchWriter,
        reporter: Reporter,
        is_stop_asked: Callable[[], bool],
        java_bus: JavaBus,
        logs: SourceLogs | None = None,
        is_trial: bool = False,
        log_file: Path | None = None,
    ) -> None:
        self._logs = logs
        self._pipeline = pipeline
        self._run = run
        self._settings = settings
        self._writer = writer
        self._reporter = reporter
        self._is_stop_asked = is_stop_asked
        self._positions = (
            None
            if is_trial
            else GroupPositions(run.bus, settings.name, reporter.tell, java_bus.group)
        )
        self._log_file = log_file
        self._committed: dict[str, dict[str, int]] = {}
        self._seen_report = ""
        self._is_outage_told = False
        self._outage_end = float("-inf")

    def go_on(self) -> str:
        """Return STOPPED or FINISHED when the run is over; raise what it could not get over."""
        if self._positions is not None:
            self._positions.claim(is_former=self._logs is not None and self._logs.is_former)
        with contextlib.closing(self._writer), BusWatch(self._run.bus) as watch:
            failures = 0
            while True:
                batches = self._reporter.progress.batches
                try:
                    self._attempt(watch)
                    break
                except Exception as error:
                    failure = self._cause(error)
                if self._reporter.progress.batches > batches:
                    failures = 0
                failures += 1
                if not self._is_to_retry(failure, failures, watch):
                    break
                self._reporter.progress.restarts += 1
            if self._positions is not None:
                self._positions.finish()
        return run_state.STOPPED if self._is_stop_asked() else run_state.FINISHED

    def _attempt(self, watch: BusWatch) -> None:
        """One query from start to end; returns if it ended well, raises if it failed."""
        source = self._pipeline.source
        if self._logs is not None and isinstance(source, TopicSource) and source.may_lose_topics:
            self._logs.plan_without_gone(self._reporter.tell)
        self._writer.begin(())  # forgets the failure of the attempt before
        with self._open_sinks():
            query = self._start()
            try:
                self._follow(query, watch)
            finally:
                self._end(query, watch)
            error = query.exception()
            self._take_progress(query)
            if error is not None and not self._writer.is_refusing:
                raise error

    @contextlib.contextmanager
    def _open_sinks(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            sinks = []
            for sink in self._pipeline.sinks:
                sinks.append(sink.open(self._run))
                stack.callback(sinks[-1].close)
            self._writer.begin(sinks)
            yield

    def _start(self) -> Any:
        self._seen_report = ""
        return (
            self._pipeline.source.stream(self._run)
            .writeStream.queryName(self._settings.name)
            .option("checkpointLocation", self._run.checkpoint)
            .trigger(**self._settings.trigger.spark_arguments())
            .foreachBatch(self._writer)
            .start()
        )

    def _follow(self, query: Any, watch: BusWatch) -> None:
        while query.isActive:
            self._take_progress(query)
            self._note_bus(watch)
            is_stopping = self._is_stop_asked()
            if is_stopping and self._may_stop(watch):
                return
            if self._is_outage_told:
                since = time.strftime("%H:%M:%S", time.gmtime(watch.unreachable_since))
                self._reporter.set_state(run_state.WAITING, f"bus unreachable since {since} UTC")
            elif is_stopping:
                self._reporter.set_state(run_state.STOPPING, "ends after this batch")
            else:
                self._reporter.set_state(run_state.RUNNING)
            with contextlib.suppress(Exception):  # asked for by query.exception() afterwards
                query.awaitTermination(_POLL_S)

    def _may_stop(self, watch: BusWatch) -> bool:
        """Whether no batch is under way, from its start to the note that it is done."""
        if watch.unreachable_since is not None:
            self._reporter.tell(
                "the bus is unreachable, so the batch cannot end; it is done again by the next run"
            )
            return True
        writer = self._writer
        if writer.running_batch is not None:
            return False
        # Spark reports on a batch after it has noted that it is done.
        return writer.last_batch is None or self._reporter.progress.last_report >= writer.last_batch

    def _note_bus(self, watch: BusWatch) -> None:
        """Tell that the bus went and came; give up when it has been away for too long."""
        since = watch.unreachable_since
        bootstrap = self._run.bus.bootstrap
        self._reporter.progress.bus_unreachable_since = since
        if since is None:
            if self._is_outage_told:
                self._is_outage_told = False
                self._outage_end = time.monotonic()
                self._reporter.tell(f"{bootstrap} answers again")
            return
        if not self._is_outage_told:
            self._is_outage_told = True
            self._reporter.tell(f"no broker answers at {bootstrap}; waiting for it")
        if watch.unreachable_for_s > self._settings.bus_timeout_s:
            raise bus_is_gone(self._run.bus, self._settings.bus_timeout_s)

    def _take_progress(self, query: Any) -> None:
        """Take in what Spark has reported since the last look, the oldest first."""
        writer, progress = self._writer, self._reporter.progress
        progress.running_batch, progress.running_since = writer.running_batch, writer.running_since
        progress.dead_letters, progress.drift_reports = writer.dead_letters, writer.drift_reports
        for report in self._new_reports(query):
            counted = writer.rows_of_batch.pop(report["batchId"], None)
            progress.take_in(report, time.time(), counted)
        if self._positions is None:
            return
        if progress.offsets != self._committed:
            self._committed = progress.offsets
            self._positions.commit(self._committed)
        self._positions.go_on()

    def _new_reports(self, query: Any) -> list[dict[str, Any]]:
        import json

        last = query._jsq.lastProgress()
        if last is None or _key(last) == self._seen_report:
            return []
        reports = []
        recent = query._jsq.recentProgress()
        for index in range(len(recent) - 1, -1, -1):
            if _key(recent[index]) == self._seen_report:
                break
            reports.append(json.loads(recent[index].json()))
        self._seen_report = _key(last)
        return reports[::-1]

    def _end(self, query: Any, watch: BusWatch) -> None:
        """Stop the query unless it has ended; a Java that hangs is left to the process's end."""
        stopper = threading.Thread(target=_stop_quietly, args=(query,), daemon=True)
        stopper.start()
        is_bus_there = watch.unreachable_since is None
        stopper.join(_STOP_TIMEOUT_S if is_bus_there else _STOP_WITHOUT_BUS_TIMEOUT_S)

    def _cause(self, error: Exception) -> Failure:
        """What really happened: what a batch met, or what Spark says; in words, while it can."""
        return self._writer.failure or failure_of(error, self._log_file)

    def _is_to_retry(self, failure: Failure, failures: int, watch: BusWatch) -> bool:
        """Wait until another try makes sense; False if the run is to end before that.

        Raises the failure if no try makes sense.
        """
        sentence = failure.sentence
        if isinstance(sentence, _BusIsGoneError) or not self._is_java_there():
            raise sentence
        if not watch.look():
            return self._wait_for_bus(watch)
        if self._logs is not None:
            # "Some data may have been lost" is true of a topic that was made again, and no help.
            with contextlib.suppress(BusSilentError):
                self._logs.check()
        is_recovering = time.monotonic() - self._outage_end < _RECOVERY_S
        is_own = failure.is_own and not isinstance(sentence, SourceError)
        if not failure.is_retriable and (is_own or not is_recovering):
            raise sentence
        if failures > self._settings.max_restarts:
            raise sentence
        back_off_s = min(FIRST_BACK_OFF_S * 2 ** (failures - 1), MOST_BACK_OFF_S)
        self._reporter.tell(f"{sentence}; trying again in {back_off_s:g} s")
        self._reporter.set_state(run_state.STARTING, f"trying again after: {sentence}")
        return self._pause(back_off_s)

    def _is_java_there(self) -> bool:
        """Whether the session can start another query: memory that ran out ends it within Java."""
        try:
            context: Any = self._run.spark.sparkContext._jsc
            return not context.sc().isStopped()
        except Exception:  # py4j has several for a Java that is gone
            return False

    def _wait_for_bus(self, watch: BusWatch) -> bool:
        while watch.unreachable_since is not None:
            self._note_bus(watch)
            self._reporter.set_state(run_state.WAITING, "the bus is unreachable")
            if not self._pause(_POLL_S):
                return False
        self._note_bus(watch)
        return True

    def _pause(self, seconds: float) -> bool:
        """Return False as soon as the run is to end."""
        patience = Patience(
            seconds,
            is_stopped=self._is_stop_asked,
            meanwhile=self._reporter.refresh,
            first_pause_s=seconds,
        )
        try:
            patience.pause()
        except StoppedError:
            return False
        return True


class _BusIsGoneError(SourceError):
    """The bus was away for longer than the run waits."""


def bus_is_gone(bus: Bus, timeout_s: float) -> SourceError:
    """What ends a run whose bus does not come back."""
    return _BusIsGoneError(
        f"no broker has answered at {bus.bootstrap} for {timeout_s:g} s; start it and run the "
        "pipeline again: it goes on where it was"
    )


def _key(report: Any) -> str:
    return f"{report.batchId()} {report.timestamp()}"


def _stop_quietly(query: Any) -> None:
    # Whatever it raises, the query's own failure says more.
    with contextlib.suppress(Exception):
        query.stop()
