"""`headrace pipeline run`: one pipeline, until it is done or told to end."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.assignments import parse_pairs
from headrace.cli.completion import topic_names
from headrace.cli.connection import Connection, connects
from headrace.cli.endings import EXIT_INTERRUPTED
from headrace.cli.interruption import Interruption
from headrace.cli.pipeline.options import (
    StateDir,
    pipeline_names,
    state_dir_or_default,
)
from headrace.cli.terminal import is_plain
from headrace.client.positions import SYNTAX

EPILOG = (
    "Example: headrace pipeline run archive --topic orders --to parquet:lake "
    "--trigger available-now"
)
_SPARK, _RUN = "Spark", "Run"


@connects
def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a pipeline, or the path of its .py or .yaml file.",
            autocompletion=pipeline_names,
        ),
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC", help="Read this topic; may be repeated.", autocompletion=topic_names
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Read all topics whose whole name matches."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="POSITION", help=f"Where a new run begins: {SYNTAX}"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="POSITION", help="Read once up to here, then end."),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URI",
            help="Write here: parquet:PATH, delta:PATH, topic:NAME, sqlite:PATH, postgresql://…, "
            "mariadb://…, console:; may be repeated.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="An option of the pipeline's own; may be repeated."
        ),
    ] = None,
    trigger: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="continuous, available-now (ends with what is there) or an interval: 30s.",
            rich_help_panel=_RUN,
        ),
    ] = "continuous",
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rows of a batch at most.", show_default="500000", rich_help_panel=_RUN
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where the run keeps its position; a path or a URI.",
            show_default="in the state directory",
            rich_help_panel=_RUN,
        ),
    ] = None,
    run_name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="RUN",
            help="Name of the run and of its consumer group.",
            show_default="the pipeline's",
            rich_help_panel=_RUN,
        ),
    ] = None,
    on_data_loss: Annotated[
        str | None,
        typer.Option(
            metavar="fail|go-on",
            help="What to do when records expired before they were read.",
            show_default="fail",
            rich_help_panel=_RUN,
        ),
    ] = None,
    on_other_log: Annotated[
        str,
        typer.Option(
            metavar="fail|same|anew",
            help="What to do when a topic was made again, or another cluster answers, since the "
            "run before: anew reads it from the start; same takes it for a mirror's copy.",
            rich_help_panel=_RUN,
        ),
    ] = "fail",
    new_sinks: Annotated[
        bool,
        typer.Option(
            "--new-sinks",
            help="Let --to differ from the run before; the new ones get what comes from now on.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    dead_letter_topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Where records go that cannot be decoded.",
            show_default="PIPELINE.dead-letters",
            rich_help_panel=_RUN,
        ),
    ] = None,
    bus_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="How long to wait for a broker that went away.",
            show_default="600",
            rich_help_panel=_RUN,
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve figures for Prometheus here, at /metrics.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    metrics_host: Annotated[
        str,
        typer.Option(metavar="HOST", help="The address of --metrics-port.", rich_help_panel=_RUN),
    ] = "127.0.0.1",
    state_dir: StateDir = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no figures.", rich_help_panel=_RUN)
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            help="local[N], spark://…, k8s://…, yarn.",
            show_default="this machine",
            rich_help_panel=_SPARK,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A setting of Spark's; may be repeated.",
            rich_help_panel=_SPARK,
        ),
    ] = None,
    *,
    connection: Connection,
) -> None:
    """Run a pipeline until it is done, or until SIGTERM or Ctrl-C, after the batch in hand.

    A second run goes on where the first ended. SIGTERM ends it with 0, Ctrl-C with 130, a second
    Ctrl-C at once.
    """
    from headrace.pipelines.registry import load_pipeline
    from headrace.pipelines.running.run_state import RunDirectory
    from headrace.pipelines.running.runner import run_pipeline
    from headrace.pipelines.running.settings import BUS_TIMEOUT_S, RunSettings, Trigger
    from headrace.pipelines.running.source_logs import parse_on_other_log
    from headrace.pipelines.running.view import view_for
    from headrace.pipelines.source import TopicSource
    from headrace.pipelines.spark.settings import LOCAL_MASTER

    options = parse_pairs("--option", option or ())
    source = TopicSource(
        topics=tuple(topic or ()),
        pattern=pattern,
        start=start,
        end=until,
        max_rows_per_batch=max_rows,
        on_data_loss=on_data_loss,
    )
    pipeline = load_pipeline(name, source=source, sinks=to or (), options=options)
    settings = RunSettings(
        name=run_name or pipeline.name,
        master=master or LOCAL_MASTER,
        conf=parse_pairs("--conf", conf or ()),
        trigger=Trigger(trigger),
        checkpoint=checkpoint,
        state_dir=state_dir_or_default(state_dir),
        dead_letter_topic=dead_letter_topic,
        on_other_log=parse_on_other_log(on_other_log),
        may_change_sinks=new_sinks,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        bus_timeout_s=bus_timeout or BUS_TIMEOUT_S,
    )
    view = view_for(sys.stderr, is_plain=is_plain(sys.stderr), is_quiet=quiet)
    log_file = RunDirectory(settings.state_dir, settings.name).log_file
    with Interruption() as interruption, _libraries_write_to(log_file):
        report = run_pipeline(
            pipeline,
            connection.bus_for_java(),
            settings,
            view=view,
            is_stop_asked=lambda: bool(interruption),
        )
    # A run that was told to end by `headrace pipeline stop` has done what it was told.
    if report.is_stopped and interruption.exit_code == 128 + signal.SIGINT:
        raise typer.Exit(EXIT_INTERRUPTED)


@contextlib.contextmanager
def _libraries_write_to(log_file: Path) -> Iterator[None]:
    """py4j and pyspark print tracebacks when Java dies; those belong beside Java's own words.

    The view was made with the terminal, and what ends the command is told after this.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # the run says so itself, in a sentence
            log_file.parent.mkdir(parents=True, exist_ok=True)
            log = stack.enter_context(log_file.open("a", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stderr(log))
        yield
