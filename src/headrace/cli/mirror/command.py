"""`headrace mirror`: bring topics, messages and group positions from one bus to another."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from headrace.cli.connection import Connection
from headrace.cli.endings import CommandError, UsageError, tell
from headrace.cli.interruption import Interruption
from headrace.cli.mirror.view import MirrorView
from headrace.cli.terminal import NONE, Json, human_bytes, print_facts, print_json, print_table
from headrace.client.admin import DEFAULT_TIMEOUT_S, Admin
from headrace.client.errors import UnreachableError
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.interface import (
    DEFAULT_COMPRESSION,
    DEFAULT_INTERVAL_S,
    DEFAULT_NAME,
    Options,
    Outlook,
    Summary,
)
from headrace.mirror.mirror import Mirror
from headrace.pipelines.running.settings import default_state_dir

EPILOG = "Example: headrace mirror --from 127.0.0.1:9092 --to 127.0.0.1:19092 --topics 'orders.*'"

_ENDS = "The two buses"


def mirror(
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="HOST:PORT[,…]",
            help="The bus to read from.",
            rich_help_panel=_ENDS,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="HOST:PORT[,…]", help="The bus to write to.", rich_help_panel=_ENDS
        ),
    ] = None,
    from_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Client properties for --from: TLS, SASL, …", rich_help_panel=_ENDS
        ),
    ] = None,
    to_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Client properties for --to: TLS, SASL, …", rich_help_panel=_ENDS
        ),
    ] = None,
    from_properties: Annotated[
        list[str] | None,
        typer.Option(
            "--from-X",
            metavar="NAME=VALUE",
            help="One client property for --from; may be repeated.",
            rich_help_panel=_ENDS,
        ),
    ] = None,
    to_properties: Annotated[
        list[str] | None,
        typer.Option(
            "--to-X",
            metavar="NAME=VALUE",
            help="One client property for --to; may be repeated.",
            rich_help_panel=_ENDS,
        ),
    ] = None,
    topics: Annotated[
        str, typer.Option(metavar="REGEX", help="Which topics, by their whole name.")
    ] = ".*",
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes in, until Ctrl-C.")
    ] = False,
    groups: Annotated[
        str, typer.Option(metavar="REGEX", help="Which groups' positions, by their whole name.")
    ] = ".*",
    no_groups: Annotated[
        bool, typer.Option("--no-groups", help="Bring no group positions over.")
    ] = False,
    rewind_groups: Annotated[
        bool,
        typer.Option("--rewind-groups", help="Let positions at the target also move back."),
    ] = False,
    replication_factor: Annotated[
        int | None,
        typer.Option(help="Copies of each new partition.", show_default="the target's", min=1),
    ] = None,
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        typer.Option(help="How batches are compressed for the target."),
    ] = DEFAULT_COMPRESSION,
    verify: Annotated[
        Literal["checksums", "counts", "none"],
        typer.Option(help="How the copy is checked: by reading it again, by offsets, not at all."),
    ] = "checksums",
    interval: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="How often the place reached is noted."),
    ] = DEFAULT_INTERVAL_S,
    name: Annotated[
        str, typer.Option(help="Tells mirrors between the same clusters apart.")
    ] = DEFAULT_NAME,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew",
            help="Copy from the start what was deleted or made anew since; its target must be gone "
            "or empty. The rest goes on.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.1, help="How long to wait for a first answer."
        ),
    ] = DEFAULT_TIMEOUT_S,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the log of librdkafka on stderr.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Bring topics, messages and group positions from one bus to another.

    Partition, order, key, value, headers and timestamp stay as they are. It can be ended in any
    way, kill -9 included, and be started again: nothing is lost and nothing comes twice.
    """
    # A signal ends it at once as long as there is nothing to end well.
    admins = {
        "--from": _connect("--from", source, from_config, from_properties, timeout, verbose),
        "--to": _connect("--to", target, to_config, to_properties, timeout, verbose),
    }
    with Interruption() as interruption, MirrorView() as view:
        options = Options(
            default_state_dir(),
            topics=_pattern("--topics", topics),
            groups=None if no_groups else _pattern("--groups", groups),
            is_following=follow,
            is_rewinding=rewind_groups,
            is_anew=anew,
            replication_factor=replication_factor,
            compression=compression,
            verify=verify,
            interval_s=interval,
            name=name,
        )

        ends = [
            Endpoint(
                f"{option} {admin.bus.bootstrap}",
                admin.bus,
                timeout_s=timeout,
                listener=view,
                is_stopped=lambda: bool(interruption),
                config=admin.config,
            )
            for option, admin in admins.items()
        ]
        work = Mirror(ends[0], ends[1], options, view)
        if dry_run:
            _print_outlook(work.look(), is_json=is_json)
            return
        summary = work.run()
        view.__exit__(None, None, None)
        _print_summary(summary, is_json=is_json)
        if not summary.is_complete:
            tell("stopped before the end; the same command goes on from here")
            raise typer.Exit(interruption.exit_code)


def _connect(
    option: str,
    bootstrap: str | None,
    config: Path | None,
    properties: Iterable[str] | None,
    timeout_s: float,
    is_verbose: bool,
) -> Admin:
    connection = Connection(
        bootstrap,
        option=option,
        client_config=config,
        properties=properties or (),
        timeout_s=timeout_s,
        is_verbose=is_verbose,
    )
    if bootstrap is None and config is None:
        raise UsageError(f"name the bus: {option} HOST:PORT")
    try:
        connection.reach()
    except UnreachableError as error:
        raise CommandError(f"{error}; start it, or name another with {option}") from error
    return connection.admin()  # complains about a property that cannot be


def _pattern(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text}: no regular expression: {error}") from error


def _print_outlook(outlooks: list[Outlook], *, is_json: bool) -> None:
    if is_json:
        for each in outlooks:
            print_json(each._asdict())
        return
    print_table(
        ("topic", "what", "partitions", "messages", "configs"),
        [
            (
                each.topic,
                each.action,
                each.partitions,
                each.messages,
                ", ".join(f"{key}={value}" for key, value in each.configs.items()) or NONE,
            )
            for each in outlooks
        ],
        numbers=("partitions", "messages"),
    )


def _print_summary(summary: Summary, *, is_json: bool) -> None:
    messages = sum(each.messages for each in summary.topics)
    rate = messages / summary.seconds if summary.seconds else 0.0
    if is_json:
        for topic in summary.topics:
            print_json(topic._asdict())
        for move in summary.groups:
            print_json(
                {
                    "group": move.group,
                    "topic": move.place.topic,
                    "partition": move.place.partition,
                    "source_offset": move.source,
                    "target_offset": move.target,
                }
            )
        print_json(
            {
                "messages": messages,
                "size_bytes": sum(each.size_bytes for each in summary.topics),
                "seconds": round(summary.seconds, 3),
                "messages_per_s": round(rate),
                "verify_seconds": round(summary.verify_seconds, 3),
                "is_complete": summary.is_complete,
            }
        )
        return
    print_table(
        ("topic", "partitions", "copied", "size", "at the target", "verified"),
        [
            (
                each.topic,
                each.partitions,
                each.messages,
                human_bytes(each.size_bytes),
                each.total,
                each.verified,
            )
            for each in summary.topics
        ],
        numbers=("partitions", "copied", "size", "at the target"),
    )
    groups = sorted({move.group for move in summary.groups if move.target is not None})
    print_facts(
        {
            "copied": f"{messages:,} messages in {summary.seconds:.1f} s ({rate:,.0f}/s)",
            "verified in": f"{summary.verify_seconds:.1f} s",
            "groups": ", ".join(groups) or NONE,
        }
    )
