"""`headrace groups`: list and describe consumer groups, move their offsets, delete them."""

import sys
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from headrace.cli.completion import group_names, topic_names
from headrace.cli.connection import Connection, connects
from headrace.cli.endings import EXIT_FAILED, CommandError, UsageError, sentence_of, tell, tell_each
from headrace.cli.groups.description import GroupFacts, describe_group
from headrace.cli.groups.reset import Move, apply_moves, plan_moves
from headrace.cli.interruption import Interruption
from headrace.cli.terminal import (
    NONE,
    Json,
    Yes,
    confirm,
    help_style,
    is_plain,
    print_facts,
    print_heading,
    print_json,
    print_table,
)
from headrace.client.descriptions import DEAD, MemberDescription
from headrace.client.positions import SYNTAX, parse_position

app = typer.Typer(
    help="List and describe consumer groups, move their offsets, delete them.",
    no_args_is_help=True,
    rich_markup_mode=help_style(),
)

Name = Annotated[
    str, typer.Argument(metavar="GROUP", help="Name of the group.", autocompletion=group_names)
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="GROUP", help="Names of the groups.", autocompletion=group_names),
]

_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
_DEFAULT_WATCH_S = 2.0
_CLEAR_SCREEN = "\x1b[H\x1b[2J"


@app.command("list", epilog="Example: headrace groups list --state stable")
@connects
def list_(
    state: Annotated[
        list[str] | None,
        typer.Option(help=f"Only groups in this state ({', '.join(_STATES)}); may be repeated."),
    ] = None,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """List the consumer groups."""
    wanted = {_parse_state(word) for word in state or ()}
    admin = connection.admin()
    answer = admin.list_groups()
    shown = [
        {"group": each.name, "state": each.state, "protocol": each.protocol}
        for each in answer.groups
        if not wanted or each.state in wanted
    ]
    if is_json:
        for each in shown:
            print_json(each)
    else:
        print_table(("group", "state", "protocol"), [tuple(each.values()) for each in shown])
    for error in answer.errors:  # of a broker that did not answer: its groups are missing
        tell(sentence_of(error))
    if answer.errors:
        raise typer.Exit(EXIT_FAILED)


@app.command(epilog="Example: headrace groups describe billing")
@connects
def describe(
    name: Name,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time between two looks of --watch.", min=0.1)
    ] = _DEFAULT_WATCH_S,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Show a group: its state, its members, and for each partition the lag."""
    admin = connection.admin()
    if not watch:
        _show_group(describe_group(admin, name), is_json=is_json)
        return
    with Interruption() as interruption:
        while not interruption:
            facts = describe_group(admin, name)
            if not is_json and not is_plain():
                print(_CLEAR_SCREEN, end="")
            _show_group(facts, is_json=is_json)
            sys.stdout.flush()
            interruption.sleep_until(time.monotonic() + every)
        raise typer.Exit(interruption.exit_code)


@app.command(epilog="Example: headrace groups reset billing --to oldest --topic orders --dry-run")
@connects
def reset(
    name: Name,
    to: Annotated[str, typer.Option("--to", metavar="POSITION", help=f"Where to go: {SYNTAX}.")],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[:P,…]",
            help="Only this topic, or these partitions of it; may be repeated.",
            show_default="all it has committed",
            autocompletion=topic_names,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show it and change nothing.")] = False,
    yes: Yes = False,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Move the committed offsets of a group that has no members.

    Shows the old and the new offset of each partition. A shift counts from what is committed.
    """
    position = parse_position(to, now_ms=time.time_ns() // 1_000_000)
    admin = connection.admin()
    moves = plan_moves(admin, name, position, topic or [])
    if not is_json:
        _print_moves(moves)
    if not dry_run:
        confirm(f"Set these offsets of group {name}?", is_yes=yes)
        apply_moves(admin, name, moves)
    if is_json:
        for move in moves:
            print_json({"group": name, **move._asdict(), "is_dry_run": dry_run})


@app.command(epilog="Example: headrace groups delete billing --yes")
@connects
def delete(
    names: Names, yes: Yes = False, is_json: Json = False, *, connection: Connection
) -> None:
    """Delete groups that have no members, with their committed offsets."""
    admin = connection.admin()
    confirm(f"Delete {', '.join(names)} with the committed offsets?", is_yes=yes)

    def tell_deleted(name: str) -> None:
        if is_json:
            print_json({"group": name, "deleted": True})
        else:
            print(f"deleted group {name}")

    tell_each(admin.delete_groups(names), tell_deleted)


def _parse_state(word: str) -> str:
    for state in _STATES:
        if word.replace("-", "").lower() == state.lower():
            return state
    raise UsageError(f"--state {word}: a group is {', '.join(_STATES[:-1])} or {_STATES[-1]}")


def _described(facts: GroupFacts) -> dict[str, object]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        **facts._asdict(),
        "total_lag": facts.total_lag,
        "partitions": [each._asdict() for each in facts.partitions],
        "members": [_member(each) for each in facts.members],
    }


def _member(member: MemberDescription) -> dict[str, object]:
    partitions = [f"{topic}-{number}" for topic, number in member.partitions]
    return {**member._asdict(), "partitions": partitions}


def _show_group(facts: GroupFacts, *, is_json: bool) -> None:
    if facts.state == DEAD and not facts.partitions:
        raise CommandError(
            f"no group is called {facts.group}; 'headrace groups list' shows those there are"
        )
    if is_json:
        print_json(_described(facts))
    else:
        _print_group(facts)


def _print_group(facts: GroupFacts) -> None:
    print_heading(facts.group)
    print_facts(
        {
            "state": facts.state,
            "protocol": facts.protocol,
            "assignor": facts.assignor or NONE,
            "coordinator": facts.coordinator or NONE,
            "members": len(facts.members),
            "total lag": facts.total_lag,
        }
    )
    rows = [tuple(NONE if cell is None else cell for cell in each) for each in facts.partitions]
    for member in facts.members:
        if not member.partitions:
            rows.append((NONE,) * 5 + (member.member_id, member.host, member.client_id))
    columns = ("topic", "partition", "committed", "end", "lag", "member", "host", "client")
    print_table(columns, rows, numbers=("partition", "committed", "end", "lag"))


def _print_moves(moves: list[Move]) -> None:
    print_table(
        ("topic", "partition", "old", "new"),
        [
            (
                move.topic,
                move.partition,
                NONE if move.old_offset is None else move.old_offset,
                move.new_offset,
            )
            for move in moves
        ],
        numbers=("partition", "old", "new"),
    )
