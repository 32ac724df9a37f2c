"""The session all Spark jobs share, and a pipeline run in it as `headrace pipeline run` would."""

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.client.bus import Bus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_bench_session(log_file: Path) -> "SparkSession":
    """The session a user's run gets, with its defaults."""
    from headrace.pipelines.spark.session import open_session

    # Spark puts in a handler of its own, which cancels all jobs on Ctrl-C.
    former = signal.getsignal(signal.SIGINT)
    try:
        return open_session("headrace bench", log_file=log_file)
    finally:
        signal.signal(signal.SIGINT, former)


def close_bench_session(spark: "SparkSession") -> None:
    """End it and its Java process."""
    from headrace.pipelines.spark.session import close_session

    close_session(spark)


def run_available_now(
    spark: "SparkSession",
    name: str,
    *,
    bootstrap: str,
    topic: str,
    to: str,
    state_dir: Path,
    is_stop_asked: Callable[[], bool],
    options: Mapping[str, str] | None = None,
) -> None:
    """Run a shipped pipeline from the oldest record to the last, with the default batch size."""
    from headrace.pipelines import registry
    from headrace.pipelines.running.runner import run_pipeline
    from headrace.pipelines.running.settings import RunSettings, Trigger
    from headrace.pipelines.sinks.uri import parse_sink
    from headrace.pipelines.source import TopicSource

    given = dict(options or {})
    source, sinks = TopicSource(topics=(topic,)), (parse_sink(to, given),)
    pipeline = registry.find(name).build(given, source, sinks)
    settings = RunSettings(
        name=f"bench-{name}", state_dir=state_dir, trigger=Trigger("available-now")
    )
    run_pipeline(pipeline, Bus(bootstrap), settings, is_stop_asked=is_stop_asked, spark=spark)
