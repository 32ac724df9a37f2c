"""`headrace configs`: show, set and unset the configs of topics, brokers and groups."""

from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.assignments import parse_assignments
from headrace.cli.completion import topic_names
from headrace.cli.connection import Connection, connects
from headrace.cli.endings import UsageError
from headrace.cli.terminal import NONE, Json, help_style, print_json, print_table
from headrace.client.admin import Admin
from headrace.client.descriptions import Config

app = typer.Typer(
    help="Show, set and unset configs of topics, brokers and groups.",
    no_args_is_help=True,
    rich_markup_mode=help_style(),
)


class ConfigKind(StrEnum):
    """What has configs."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"


KindArgument = Annotated[
    ConfigKind, typer.Argument(metavar="topic|broker|group", help="What has the configs.")
]


def _complete_name(context: typer.Context, incomplete: str) -> list[str]:
    from headrace.cli.completion import group_names

    kind = context.params.get("kind")
    if kind == ConfigKind.TOPIC:
        return topic_names(context, incomplete)
    return group_names(context, incomplete) if kind == ConfigKind.GROUP else []


@app.command(epilog="Example: headrace configs show topic orders --all")
@connects
def show(
    kind: KindArgument,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="Topic, group or broker id; of a single broker the id may be left out.",
            autocompletion=_complete_name,
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Also those that nobody has set: the defaults.")
    ] = False,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Show the configs that were set on a topic, a broker or a group."""
    admin = connection.admin()
    target = _target(admin, kind, [name] if name else [])
    configs = [config for config in admin.configs(kind, target) if all_ or config.is_set_on(kind)]
    if is_json:
        for config in configs:
            print_json(asdict(config))
        return
    print_table(
        ("name", "value", "source"),
        [(config.name, _shown(config), config.source) for config in configs],
    )


Force = Annotated[
    bool,
    typer.Option("--force", help="Also a name nobody knows; a broker's plug-in may know it."),
]


@app.command("set", epilog="Example: headrace configs set topic orders retention.ms=86400000")
@connects
def set_(
    kind: KindArgument,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TARGET] NAME=VALUE…",
            help="Topic, group or broker id, then what to set.",
            autocompletion=_complete_name,
        ),
    ],
    force: Force = False,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Set configs of a topic, a broker or a group; the others stay as they are."""
    named = [word for word in words[:1] if "=" not in word]
    wanted = parse_assignments(words[len(named) :])
    _alter(connection, kind, named, dict(wanted), is_forced=force, is_json=is_json)


@app.command(epilog="Example: headrace configs unset topic orders retention.ms")
@connects
def unset(
    kind: KindArgument,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TARGET] CONFIG…",
            help="Topic, group or broker id, then configs to unset.",
            autocompletion=_complete_name,
        ),
    ],
    force: Force = False,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Return configs of a topic, a broker or a group to their defaults."""
    is_named = kind != ConfigKind.BROKER or words[0].isdecimal()
    named = words[:1] if is_named else []
    wanted = dict.fromkeys(words[len(named) :])
    _alter(connection, kind, named, wanted, is_forced=force, is_json=is_json)


def _alter(
    connection: Connection,
    kind: ConfigKind,
    named: list[str],
    wanted: dict[str, str | None],
    *,
    is_forced: bool,
    is_json: bool,
) -> None:
    if not wanted:
        raise UsageError(f"name at least one config after the {kind}")
    admin = connection.admin()
    target = _target(admin, kind, named)
    if not is_forced:
        _refuse_unknown(admin, kind, target, wanted)
    admin.alter_configs(kind, target, wanted)
    if is_json:
        print_json({"kind": kind.value, "name": target, "configs": wanted})
        return
    for config, value in wanted.items():
        done = f"unset {config}" if value is None else f"set {config}={value}"
        print(f"{kind} {target}: {done}")


def _target(admin: Admin, kind: ConfigKind, named: Iterable[str]) -> str:
    """Name of the topic or group, id of the broker."""
    name = next(iter(named), None)
    if kind != ConfigKind.BROKER:
        if name is None:
            raise UsageError(f"name the {kind}, such as 'headrace configs show {kind} orders'")
        return name
    brokers = [str(each) for each in sorted(admin.metadata().brokers)]
    if name is None and len(brokers) == 1:
        return brokers[0]
    if name not in brokers:
        wrong = "say which broker" if name is None else f"no broker has the id {name}"
        raise UsageError(f"{wrong}; there are {', '.join(brokers)}")
    return name


def _refuse_unknown(admin: Admin, kind: str, target: str, names: Iterable[str]) -> None:
    """A broker would store a name that nobody knows without a word."""
    from headrace.settings import catalogue, retired, sources

    known = {"topic": catalogue.TOPIC, "broker": catalogue.BROKER, "group": catalogue.GROUP}[kind]
    unknown = [name for name in names if name not in known]
    if kind == "broker":
        unknown = [
            name
            for name in unknown
            if not catalogue.find_broker_setting(name) and not retired.is_for_plug_in(name)
        ]
    if not unknown:
        return
    # A newer broker knows more than we do, and shows what somebody forced on it before.
    shown = {config.name for config in admin.configs(kind, target)}
    for name in unknown:
        if name not in shown:
            nearest = sources.nearest(name, sorted(shown.union(known)))
            guess = f"; did you mean {nearest}?" if nearest else ";"
            raise UsageError(
                f"{name}: no {kind} config has this name{guess} "
                "--force sends it all the same, for what a plug-in of the broker may know"
            )


def _shown(config: Config) -> str:
    if config.is_sensitive:
        return "(hidden)"
    return NONE if config.value is None else config.value
