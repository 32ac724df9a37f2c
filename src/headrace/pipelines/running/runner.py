"""`run_pipeline`: everything from a definition and a bus to rows in sinks.

What needs no Spark is checked first, so a wrong word costs a second, not the start of a Java
process. The session is opened and closed here unless one is given.
"""

import contextlib
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.client.bus import Bus
from headrace.errors import HeadraceError
from headrace.pipelines.definition import Pipeline, Run
from headrace.pipelines.loops import TopicsInUse, refuse_duplicates, refuse_loops
from headrace.pipelines.running import run_state
from headrace.pipelines.running.batch import BatchWriter
from headrace.pipelines.running.checkpoint import Checkpoint
from headrace.pipelines.running.java_bus import JavaBus
from headrace.pipelines.running.lock import Lock
from headrace.pipelines.running.progress import RunProgress
from headrace.pipelines.running.reporting import Reporter, View
from headrace.pipelines.running.run_state import RunDirectory
from headrace.pipelines.running.settings import RunSettings
from headrace.pipelines.running.source_logs import SourceLogs
from headrace.pipelines.running.streaming import StreamingRun
from headrace.pipelines.sinks.console import NobodyReadsError
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spans import Batch
from headrace.pipelines.topic_positions import TopicPositions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run ended, FINISHED or STOPPED of `run_state`, and its figures."""

    state: str
    progress: RunProgress

    @property
    def is_stopped(self) -> bool:
        """Whether it was asked to end, rather than having nothing left to do."""
        return self.state == run_state.STOPPED


def run_pipeline(
    pipeline: Pipeline,
    bus: Bus | None = None,
    settings: RunSettings | None = None,
    *,
    view: View | None = None,
    is_stop_asked: Callable[[], bool] = bool,
    spark: "SparkSession | None" = None,
) -> RunReport:
    """Run a pipeline until it is done, or until `is_stop_asked`, after the batch in hand.

        archive = load_pipeline("archive", source="orders", sinks=["parquet:lake"])
        settings = RunSettings(name="archive", trigger=Trigger("available-now"))
        report = run_pipeline(archive, bus, settings)
        print(report.progress.rows)

    It goes on where the run of the same name ended. Raises HeadraceError, one sentence, if it
    cannot be started or gone on with. A session that is given is used and left open; `view` is
    shown figures and sentences.
    """
    bus, settings = bus or Bus(), settings or RunSettings(name=pipeline.name)
    with contextlib.ExitStack() as stack:
        runner = _Runner(pipeline, bus, settings, view or View(), is_stop_asked, stack, spark)
        return runner.run()


class _Runner:
    def __init__(
        self,
        pipeline: Pipeline,
        bus: Bus,
        settings: RunSettings,
        view: View,
        is_stop_asked: Callable[[], bool],
        stack: contextlib.ExitStack,
        given: "SparkSession | None",
    ) -> None:
        self._pipeline = pipeline
        self._bus = bus
        self._settings = settings
        self._is_stop_asked = is_stop_asked
        self._stack = stack
        self._given = given
        self._directory = RunDirectory(settings.state_dir, settings.name)
        self._log_file = _log_file(given, self._directory)
        self._locks = [self._lock(f"run name {settings.name}")]
        self._is_trial = all(sink.is_trial for sink in pipeline.sinks)
        self._checkpoint: Checkpoint | None = None
        if not pipeline.source.is_bounded_only:
            self._checkpoint = Checkpoint(self._checkpoint_place())
        self._logs: SourceLogs | None = None
        self._dead_letter_topic = None if self._is_trial else _dead_letter_topic(pipeline, settings)
        refuse_loops(pipeline.source, pipeline.sinks, self._dead_letter_topic)
        refuse_duplicates(pipeline.sinks)
        self._in_use = TopicsInUse.of(pipeline.source, self._dead_letter_topic, pipeline.sinks)
        self._reporter = Reporter(self._directory, view, self._facts())

    def run(self) -> RunReport:
        """Run it to its end and report the end, whichever it is."""
        try:
            state = self._run()
        except NobodyReadsError:
            state = run_state.STOPPED
        except HeadraceError as error:
            self._reporter.end(run_state.FAILED, str(error))
            raise
        except BaseException as error:
            failure = _as_sentence(error, self._log_file)
            self._reporter.end(run_state.FAILED, str(failure))
            raise failure from None  # its words are in the log; itself it may not have any more
        self._reporter.end(state)
        return RunReport(state, self._reporter.progress)

    def _run(self) -> str:
        if self._settings.metrics_port is not None:
            from headrace.pipelines.running.metrics import serve_metrics

            self._stack.enter_context(serve_metrics(self._settings, self._reporter))
        app_id = self._claim() if self._checkpoint and self._checkpoint.is_local else None
        self._check_source()
        with (
            self._session() as session,
            _as_sentences(self._log_file),
            contextlib.closing(JavaBus(session, self._bus)) as java_bus,
        ):
            self._note_java(session)
            if self._checkpoint and app_id is None:
                self._checkpoint.attach(session)
                app_id = self._claim()
                self._check_source()
            if self._is_stop_asked():
                return run_state.STOPPED
            if self._logs:
                self._logs.ask_by(java_bus.identity)
            run = Run(
                spark=session,
                bus=self._bus,
                name=self._settings.name,
                app_id=app_id or uuid.uuid4().hex,
                tell=self._reporter.tell,
                checkpoint=self._checkpoint.place if self._checkpoint else None,
                refuse_topic=self._in_use.refuse_row,
                kept_offsets=self._checkpoint.kept_offsets() if self._checkpoint else None,
                is_resumed=lambda: self._checkpoint is not None and self._checkpoint.is_begun,
            )
            writer = BatchWriter(
                self._pipeline,
                run,
                dead_letter_topic=self._dead_letter_topic,
                is_stop_asked=self._is_stop_asked,
                batch_of=self._logs.batch if self._logs else Batch,
                log_file=self._log_file,
            )
            return (
                self._write_once(run, writer)
                if self._checkpoint is None
                else self._go_on(run, writer, java_bus)
            )

    def _go_on(self, run: Run, writer: BatchWriter, java_bus: JavaBus) -> str:
        streaming = StreamingRun(
            self._pipeline,
            run,
            self._settings,
            writer=writer,
            reporter=self._reporter,
            is_stop_asked=self._is_stop_asked,
            java_bus=java_bus,
            logs=self._logs,
            is_trial=self._is_trial,
            log_file=self._log_file,
        )
        return streaming.go_on()

    def _write_once(self, run: Run, writer: BatchWriter) -> str:
        """A source with an end is one batch. A thread writes it, so that this one can tell."""
        failures = list[BaseException]()
        started_at = time.monotonic()

        def write() -> None:
            try:
                with contextlib.ExitStack() as stack:
                    sinks = []
                    for sink in self._pipeline.sinks:
                        sinks.append(sink.open(run))
                        stack.callback(sinks[-1].close)
                    writer.begin(sinks)
                    writer.write(self._pipeline.source.batch(run), Batch(0), is_counting=True)
            except BaseException as error:
                failures.append(_as_sentence(error, self._log_file))

        progress = self._reporter.progress
        progress.running_batch, progress.running_since = 0, time.time()
        thread = threading.Thread(target=write, name="batch", daemon=True)
        thread.start()
        while thread.is_alive():
            is_stopping = self._is_stop_asked()
            self._reporter.set_state(run_state.STOPPING if is_stopping else run_state.RUNNING)
            thread.join(_POLL_S)
        if failures:
            raise failures[0]
        progress.running_batch = progress.running_since = None
        progress.dead_letters, progress.drift_reports = writer.dead_letters, writer.drift_reports
        seconds = time.monotonic() - started_at
        progress.take_in_whole(writer.rows_of_batch.get(0, 0), seconds, time.time())
        return run_state.FINISHED

    def _lock(self, what: str) -> Lock:
        lock = Lock(self._directory.lock_file, what=what, run_name=self._settings.name)
        return self._stack.enter_context(lock)

    def _note_java(self, session: "SparkSession") -> None:
        jvm: Any = session._jvm
        pid = jvm.java.lang.ProcessHandle.current().pid()
        for lock in self._locks:
            lock.add_java(pid)

    def _claim(self) -> str:
        """Lock the checkpoint, then see that it is this pipeline's."""
        assert self._checkpoint is not None
        path = self._checkpoint.lock_file(self._settings.state_dir)
        what = f"checkpoint {self._checkpoint.place}"
        lock = Lock(path, what=what, run_name=self._settings.name)
        self._locks.append(self._stack.enter_context(lock))
        return self._checkpoint.claim(
            self._pipeline, may_change_sinks=self._settings.may_change_sinks
        )

    def _check_source(self) -> None:
        """Before Spark starts, where the checkpoint can be read without it."""
        source, checkpoint = self._pipeline.source, self._checkpoint
        if checkpoint is None or not isinstance(source, TopicSource):
            source.check(self._bus)
            return
        if not checkpoint.is_readable:
            source.found(self._bus)  # whether it begins or goes on is not known yet
            return
        is_going_on = checkpoint.next_offsets() is not None and source.pattern is None
        topics = source.topics if is_going_on else source.found(self._bus)
        self._logs = SourceLogs(checkpoint, self._bus.bootstrap, TopicPositions(self._bus).identity)
        self._logs.start(topics, self._settings.on_other_log, self._reporter.tell)
        if offsets := checkpoint.next_offsets():
            source.check_resumed(self._bus, offsets)
        else:
            source.check(self._bus)

    def _checkpoint_place(self) -> str:
        """A run that only shows rows leaves nothing behind that another would go on from."""
        if self._is_trial:
            folder = tempfile.TemporaryDirectory(
                prefix="headrace-trial-", ignore_cleanup_errors=True
            )
            return self._stack.enter_context(folder)
        return self._settings.checkpoint or str(self._directory.default_checkpoint)

    @contextlib.contextmanager
    def _session(self) -> Iterator["SparkSession"]:
        if self._given is not None:
            yield self._given
            return
        from headrace.pipelines.spark.session import close_session, open_session

        # Spark puts in a handler of its own, which cancels all jobs on Ctrl-C.
        is_main = threading.current_thread() is threading.main_thread()
        former = signal.getsignal(signal.SIGINT)
        try:
            spark = open_session(
                f"headrace {self._settings.name}",
                master=self._settings.master,
                conf=self._settings.conf,
                is_quick=self._settings.is_quick,
                log_file=self._log_file,
            )
        finally:
            if is_main:
                signal.signal(signal.SIGINT, former)
        try:
            yield spark
        finally:
            close_session(spark)

    def _facts(self) -> dict[str, object]:
        pipeline, settings = self._pipeline, self._settings
        is_kept = self._checkpoint is not None and not self._is_trial
        return {
            "pipeline": pipeline.name,
            "summary": pipeline.summary,
            "source": self._described_source(),
            "decoder": pipeline.decoder.describe(),
            "sinks": [sink.describe() for sink in pipeline.sinks],
            "bootstrap": self._bus.bootstrap,
            "group": settings.name if is_kept else None,
            "checkpoint": self._checkpoint.place if self._checkpoint and is_kept else None,
            "dead_letter_topic": self._dead_letter_topic if pipeline.decoder.can_fail else None,
            "master": settings.master,
            "trigger": None if self._checkpoint is None else settings.trigger.text,
            "metrics_port": settings.metrics_port,
            "log_file": str(self._log_file) if self._log_file else None,
        }

    def _described_source(self) -> str:
        source, checkpoint = self._pipeline.source, self._checkpoint
        if checkpoint is not None and checkpoint.is_readable and checkpoint.is_begun:
            return source.describe_resumed()
        return source.describe()


def _log_file(given: "SparkSession | None", directory: RunDirectory) -> Path | None:
    """Where the run's Java writes; that of a session that was given may write nowhere we know."""
    if given is None:
        return directory.log_file
    from headrace.pipelines.spark.session import log_file_of

    return log_file_of(given)


def _dead_letter_topic(pipeline: Pipeline, settings: RunSettings) -> str:
    from headrace.pipelines.dead_letters.letter import default_topic
    from headrace.pipelines.sinks.topic import refuse_topic_name

    own = settings.dead_letter_topic or pipeline.dead_letter_topic
    if own is not None:
        refuse_topic_name(own, "dead-letter topic")
    # Two runs of one pipeline are two feeds; their bad records have nothing in common.
    return own or default_topic(settings.name)


@contextlib.contextmanager
def _as_sentences(log_file: Path | None) -> Iterator[None]:
    """Put what is raised within into words before the session, and Java with it, is closed."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise _as_sentence(error, log_file) from None


def _as_sentence(error: BaseException, log_file: Path | None) -> BaseException:
    """Spark's errors as one sentence; what is no error (Ctrl-C) as it is."""
    if not isinstance(error, Exception):
        return error
    from headrace.pipelines.spark.faults import sentence_of

    return sentence_of(error, log_file)
