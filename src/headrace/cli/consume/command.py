"""`headrace consume`: print the records of topics, up to their end or as they come."""

import re
import time
from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.completion import group_names, topic_names
from headrace.cli.connection import Connection, connects
from headrace.cli.consume.consumption import Consumption, Request
from headrace.cli.consume.record_filter import (
    Condition,
    all_of,
    has_header,
    has_key,
    key_matches,
    value_matches,
)
from headrace.cli.consume.record_format import Format, custom_format, json_format, value_format
from headrace.cli.endings import EXIT_FAILED, UsageError
from headrace.cli.interruption import Interruption
from headrace.client.positions import SYNTAX, parse_position


class Output(StrEnum):
    """How a record is printed."""

    RAW = "raw"
    JSON = "json"
    JSONL = "jsonl"


@connects
def consume(
    topics: Annotated[
        list[str], typer.Argument(help="The topics to read.", autocompletion=topic_names)
    ],
    *,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POSITION",
            help=f"Where to begin: {SYNTAX}. Default: where the group stands, else oldest, with "
            "--follow latest. Does not apply where the group has a committed offset.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="POSITION", help="Where to stop, before that record."),
    ] = None,
    partitions: Annotated[
        str | None, typer.Option("--partition", metavar="P[,…]", help="Only these partitions.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Go on where this group stands, and commit what was printed.",
            autocompletion=group_names,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on at the end, as records come.")
    ] = False,
    key: Annotated[str | None, typer.Option(help="Only records with this key.")] = None,
    key_regex: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only records whose key matches.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]", help="Only records with this header; may be repeated."
        ),
    ] = None,
    grep: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only records whose value matches.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=r"As kcat: %t topic, %p partition, %o offset, %T time, %k key, %s value, "
            r"%h headers, %K %S sizes, %%; \n is not added.",
        ),
    ] = None,
    output: Annotated[
        Output, typer.Option(help="raw: the value. json, jsonl: an object a line.")
    ] = Output.RAW,
    is_json: Annotated[bool, typer.Option("--json", help="As --output json.")] = False,
    null: Annotated[
        bool, typer.Option("--null", help="A zero byte after each record, no newline.")
    ] = False,
    connection: Connection,
) -> None:
    """Print the records of topics up to the end as it is now; with --follow, go on.

    With --group, what was printed is committed, every few seconds and at the end; without it
    nothing is. A group that is new begins at the oldest, with --follow at the latest; one that
    stands somewhere goes on there, whatever --from says: headrace groups reset moves it. Ctrl-C
    ends it with 130.
    """
    if form is not None and (is_json or output is not Output.RAW):
        raise UsageError("--format says how to print; drop --json and --output")
    if group == "" or "" in topics:
        raise UsageError("a topic or group has an empty name; write one, or leave it out")
    topics = list(dict.fromkeys(topics))
    now_ms = time.time_ns() // 1_000_000
    request = Request(
        topics=topics,
        partitions=None if partitions is None else _numbers(partitions),
        start=None if start is None else parse_position(start, now_ms),
        end=None if end is None else parse_position(end, now_ms),
        group=group,
        count=count,
        is_following=follow,
        form=_format(form, is_json=is_json or output is not Output.RAW, is_null=null),
        condition=_condition(key, key_regex, header or [], grep),
    )
    consumption = Consumption(connection, request)
    with Interruption() as interruption:
        is_committed = consumption.run(interruption)
        if interruption:
            raise typer.Exit(interruption.exit_code)
        if not is_committed:
            raise typer.Exit(EXIT_FAILED)


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise UsageError(f"--partition {text}: write numbers of partitions, such as 0,2")
    return numbers


def _format(text: str | None, *, is_json: bool, is_null: bool) -> Format:
    end = b"\0" if is_null else b"\n"
    if text is None:
        return json_format(end) if is_json else value_format(end)
    try:
        return custom_format(text, b"\0" if is_null else b"")
    except ValueError as error:
        raise UsageError(f"--format {text}: {error}") from None


def _condition(
    key: str | None, key_regex: str | None, headers: list[str], grep: str | None
) -> Condition | None:
    conditions = [has_header(text) for text in headers]
    if key is not None:
        conditions.append(has_key(_bytes(key)))
    for option, text, matches in (
        ("--key-regex", key_regex, key_matches),
        ("--grep", grep, value_matches),
    ):
        if text is not None:
            try:
                conditions.append(matches(_bytes(text)))
            except re.error as error:
                raise UsageError(f"{option} {text}: no regular expression: {error}") from None
    return all_of(conditions)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
