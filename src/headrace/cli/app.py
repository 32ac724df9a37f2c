"""The typer application: the table of all commands, their help and their completion."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headrace import __version__
from headrace.cli import cluster, configs
from headrace.cli.consume.command import consume
from headrace.cli.endings import ending
from headrace.cli.groups import commands as groups
from headrace.cli.kafka import commands as kafka
from headrace.cli.log import commands as log
from headrace.cli.mirror.command import EPILOG as MIRROR_EPILOG
from headrace.cli.mirror.command import mirror
from headrace.cli.pipeline import commands as pipeline
from headrace.cli.produce.command import produce
from headrace.cli.serve import options as serving
from headrace.cli.serve.command import run as run_broker
from headrace.cli.sql.command import EPILOG as SQL_EPILOG
from headrace.cli.sql.command import sql
from headrace.cli.terminal import help_style
from headrace.cli.top.command import top
from headrace.cli.topics import commands as topics


class _Commands(TyperGroup):
    """All commands, each of which ends as `endings` has it."""

    def invoke(self, ctx: Any) -> Any:
        with ending():
            return super().invoke(ctx)


app = typer.Typer(
    name="headrace",
    cls=_Commands,
    help="A Kafka-compatible message bus in one Python process.",
    epilog="Exit codes: 0 done, 1 failed or damage found, 2 wrong usage or configuration.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=help_style(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(topics.app, name="topics")
app.add_typer(groups.app, name="groups")
app.add_typer(configs.app, name="configs")
app.command(epilog=cluster.EPILOG)(cluster.cluster)
app.add_typer(log.app, name="log")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(kafka.app, name="kafka")
# data commands
app.command(epilog="Example: headrace produce greetings /etc/hostname")(produce)
app.command(epilog="Example: headrace consume greetings --from -1h --json")(consume)
app.command(epilog="Example: headrace top --interval 5")(top)
app.command(epilog=SQL_EPILOG)(sql)
app.command(epilog=MIRROR_EPILOG)(mirror)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def headrace(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """A Kafka-compatible message bus in one Python process."""


@app.command(epilog="Example: headrace serve --port 9092 --set log.retention.hours=24")
def serve(
    host: Annotated[str | None, typer.Option(help=serving.HELP["host"])] = None,
    port: Annotated[int | None, typer.Option(help=serving.HELP["port"])] = None,
    data_dir: Annotated[Path | None, typer.Option(help=serving.HELP["data_dir"])] = None,
    config: Annotated[Path | None, typer.Option(help=serving.HELP["config"])] = None,
    set: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help=serving.HELP["set"])
    ] = None,
    http_port: Annotated[int | None, typer.Option(help=serving.HELP["http_port"])] = None,
    log_format: Annotated[str | None, typer.Option(help=serving.HELP["log_format"])] = None,
    log_level: Annotated[str, typer.Option(help=serving.HELP["log_level"])] = "info",
    allow_public: Annotated[
        bool, typer.Option("--allow-public", help=serving.HELP["allow_public"])
    ] = False,
) -> None:
    """Run the broker until SIGTERM or Ctrl-C; prints one line when clients may connect.

    Every setting has Kafka's own name, in --config FILE, in --set, and as an environment
    variable: log.segment.bytes is HEADRACE_LOG_SEGMENT_BYTES.
    """
    # `headrace.cli.main` runs `serve` without typer; this is what typer needs to
    # explain and complete it, and it works all the same.
    options = serving.ServeOptions(
        host=host,
        port=port,
        data_dir=data_dir,
        config=config,
        set=set or [],
        http_port=http_port,
        log_format=log_format,
        log_level=log_level,
        allow_public=allow_public,
    )
    raise typer.Exit(run_broker(options))
