"""The demo's pipelines: both on one Spark session, each in a thread of its own.

As processes of their own, as a user runs them, each would pay for the start of a Java process,
which on two slow cores takes most of the demo's time. `command` is what a user would type.
"""

import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headrace.client.bus import Bus
from headrace.errors import HeadraceError
from headrace.pipelines import registry
from headrace.pipelines.definition import Pipeline
from headrace.pipelines.running.reporting import View
from headrace.pipelines.running.runner import run_pipeline
from headrace.pipelines.running.settings import RunSettings
from headrace.pipelines.sinks.uri import parse_sink
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spark.session import close_session, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The longest that a batch of the demo takes, on a busy machine too.
_STOP_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class DemoPipeline:
    """One of the shipped pipelines and what it is given."""

    name: str
    topic: str
    to: str
    options: Mapping[str, str] = field(default_factory=dict)

    def command(self, bootstrap: str, state_dir: Path) -> str:
        """The command line that runs the same."""
        words = ["headrace", "pipeline", "run", self.name, "--bootstrap", bootstrap]
        words += ["--topic", self.topic, "--to", self.to]
        for name, value in self.options.items():
            words += ["--option", f"{name}={value}"]
        return shlex.join([*words, "--state-dir", str(state_dir)])

    def build(self) -> Pipeline:
        """The pipeline itself."""
        source, sink = TopicSource(topics=(self.topic,)), parse_sink(self.to, self.options)
        return registry.find(self.name).build(self.options, source, (sink,))


class RunningPipelines:
    """A Spark session and pipelines on it, until it is left: `with RunningPipelines(…) as …`.

    The session is opened in a thread, so that the caller can show the feed meanwhile, and so that
    Spark leaves Ctrl-C alone, whose handler it replaces where it is opened in the main thread.
    """

    def __init__(
        self,
        bootstrap: str,
        state_dir: Path,
        pipelines: tuple[DemoPipeline, ...],
        tell: Callable[[str], None],
    ) -> None:
        self._bus, self._state_dir = Bus(bootstrap), state_dir
        # Here and not in their threads: what is wrong with one is known before Spark starts.
        self._pipelines = [each.build() for each in pipelines]
        self._tell = tell
        self._stop = threading.Event()
        self._errors: list[HeadraceError] = []
        self._spark: SparkSession | None = None
        self._thread = threading.Thread(target=self._run_all, name="Spark", daemon=True)

    @property
    def is_starting(self) -> bool:
        """Whether Spark itself is not ready yet."""
        return self._spark is None

    @property
    def spark(self) -> "SparkSession":
        """The session, once a pipeline has done something."""
        assert self._spark is not None
        return self._spark

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(_STOP_SECONDS)
        # Whether or not they have ended: a batch that hangs must not keep the demo from ending.
        if self._spark is not None:
            close_session(self._spark)

    def check(self) -> None:
        """Raise what has ended one of them before its time."""
        if self._errors:
            raise self._errors[0]

    def _run_all(self) -> None:
        try:
            # Quick to start: in two minutes the JVM's better compiler would not pay back.
            self._spark = open_session(
                "headrace demo",
                is_quick=True,
                log_file=self._state_dir / "pipelines" / "spark.log",
            )
        except HeadraceError as error:
            self._errors.append(error)
            return
        threads = [
            threading.Thread(target=self._run, args=(each,), name=each.name, daemon=True)
            for each in self._pipelines
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._stop.wait()

    def _run(self, pipeline: Pipeline) -> None:
        try:
            run_pipeline(
                pipeline,
                self._bus,
                RunSettings(name=pipeline.name, state_dir=self._state_dir),
                view=_Telling(pipeline.name, self._tell),
                is_stop_asked=self._stop.is_set,
                spark=self.spark,
            )
        except HeadraceError as error:
            self._errors.append(error)


class _Telling(View):
    """Passes on what a pipeline has to say; its figures are taken from the bus."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self._name, self._tell = name, tell

    def tell(self, sentence: str) -> None:
        self._tell(f"{self._name}: {sentence}")
