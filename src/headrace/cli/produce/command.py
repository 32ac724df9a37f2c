"""`headrace produce`: send lines, JSON lines or whole files to a topic."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.completion import topic_names
from headrace.cli.connection import Connection, connects
from headrace.cli.endings import EXIT_FAILED, CommandError, UsageError, tell
from headrace.cli.escapes import unescape
from headrace.cli.interruption import Interruption
from headrace.cli.outage import Outage
from headrace.cli.produce.input_files import STDIN, total_bytes
from headrace.cli.produce.messages import (
    EveryMessage,
    Parser,
    json_parser,
    key_value_parser,
    parse_header,
    value_parser,
)
from headrace.cli.produce.production import Cut, Production
from headrace.cli.produce.progress import Progress
from headrace.cli.produce.sending import QUEUE, Sender
from headrace.cli.terminal import print_json
from headrace.client.error_table import is_leaderless
from headrace.client.librdkafka import bus_errors
from headrace.patience import Patience

_MESSAGE_MAX_BYTES = "message.max.bytes"
_DEFAULT_MESSAGE_MAX_BYTES = 1_000_000  # librdkafka's
_CREATION_S = 3.0  # a broker that creates topics by itself has done so by then


class OnError(StrEnum):
    """What a line that makes no message, or a message that fails, leads to."""

    STOP = "stop"
    SKIP = "skip"


class CodecOption(StrEnum):
    """Kafka's names of its codecs."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Who must have a message before it counts as sent."""

    NOBODY = "0"
    LEADER = "1"
    ALL = "all"


@connects
def produce(
    topic: Annotated[str, typer.Argument(help="The topic to send to.", autocompletion=topic_names)],
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files to read; none, or -: stdin.")
    ] = None,
    *,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json-lines",
            help="A line is an object of key, value, headers, timestamp, partition.",
        ),
    ] = False,
    whole_file: Annotated[
        bool, typer.Option("--whole-file", help="A file is one message.")
    ] = False,
    key: Annotated[str | None, typer.Option(help="The key of every message.")] = None,
    key_separator: Annotated[
        str | None, typer.Option(help="What stands between key and value in a line.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A header of every message; may be repeated."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=-1, help="The partition of every message; -1: by key.")
    ] = None,
    delimiter: Annotated[
        str, typer.Option(help=r"What ends a line; \r, \t, \0 and \xHH are understood.")
    ] = r"\n",
    null: Annotated[bool, typer.Option("--null", help="A zero byte ends a line.")] = False,
    codec: Annotated[
        CodecOption, typer.Option(help="How batches are compressed.")
    ] = CodecOption.NONE,
    acks: Annotated[
        Acks, typer.Option(help="Who must have a message; only all is idempotent.")
    ] = Acks.ALL,
    on_error: Annotated[
        OnError, typer.Option(help="Whether a bad line or a failed message ends it all.")
    ] = OnError.STOP,
    is_json: Annotated[
        bool, typer.Option("--json", help="The summary as a JSON object on stdout.")
    ] = False,
    connection: Connection,
) -> None:
    """Send a message for each line of stdin or of files.

    Exits with 1 when a message was not acknowledged or a line ended it. Ctrl-C sends what was
    read and ends with 130; a second one does not wait for the broker.
    """
    if whole_file and (json_lines or key_separator is not None or null):
        raise UsageError("--whole-file has no lines: drop --json-lines, --key-separator and --null")
    if key_separator is not None and (json_lines or key is not None):
        raise UsageError("--key-separator goes neither with --json-lines nor with --key")
    every = EveryMessage(
        None if key is None else key.encode("utf-8", "surrogateescape"),
        tuple(map(parse_header, header or ())),
        partition,
    )
    parse = _parser(every, key_separator, is_json_lines=json_lines)
    end_of_line = b"\0" if null else _bytes(delimiter, "--delimiter")
    cut = Cut(None if whole_file else end_of_line, _message_max_bytes(connection))
    paths = files or [STDIN]
    _check_files(paths)
    with Interruption(last=3) as interruption:
        config: dict[str, object] = {
            **QUEUE,
            "acks": acks.value,
            "enable.idempotence": acks is Acks.ALL,
            "compression.type": codec.value,
            "error_cb": Outage(connection).on_error,
        }
        sender = Sender(
            lambda on_delivery: connection.producer({**config, "on_delivery": on_delivery}),
            topic,
            is_hurried=lambda: interruption.count > 1,
        )
        _check_topic(connection, sender.producer, topic, partition)
        with Progress(total_bytes(paths)) as progress:
            production = Production(
                sender,
                parse,
                cut,
                progress,
                interruption,
                is_skipping=on_error is OnError.SKIP,
            )
            production.run(paths)
        _tell_summary(production, sender, topic, is_json=is_json)
        if interruption:
            raise typer.Exit(interruption.exit_code)
        if production.is_stopped or sender.failed:
            raise typer.Exit(EXIT_FAILED)


def _parser(every: EveryMessage, key_separator: str | None, *, is_json_lines: bool) -> Parser:
    if is_json_lines:
        return json_parser(every)
    if key_separator is not None:
        return key_value_parser(every, _bytes(key_separator, "--key-separator"))
    return value_parser(every)


def _bytes(text: str, option: str) -> bytes:
    try:
        if found := unescape(text):
            return found
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
    raise UsageError(f"{option} cannot be empty")


def _message_max_bytes(connection: Connection) -> int:
    stated = connection.config().get(_MESSAGE_MAX_BYTES, _DEFAULT_MESSAGE_MAX_BYTES)
    try:
        return int(str(stated))
    except ValueError:
        raise UsageError(f"-X {_MESSAGE_MAX_BYTES}={stated}: not a number") from None


def _check_files(paths: list[Path]) -> None:
    """Find a wrong name before the first message is sent."""
    for path in paths:
        if path != STDIN and not path.exists():
            raise UsageError(f"{path}: no such file")
        if path.is_dir():
            raise UsageError(f"{path} is a directory; name its files")


def _check_topic(connection: Connection, producer: Any, topic: str, partition: int | None) -> None:
    """Return when the topic is there, which asking for it may bring about; else say so now.

    librdkafka would take messages for 30 s before it says that there is no such topic.
    """
    patience = Patience(min(connection.timeout_s, _CREATION_S))
    with bus_errors(connection.admin().failure):
        while True:
            found = producer.list_topics(topic, connection.timeout_s).topics[topic]
            if found.error is None and found.partitions:
                break
            if found.error is not None and not is_leaderless(found.error):
                raise CommandError(f"topic {topic}: {connection.admin().failure(found.error)}")
            if not patience.pause():
                raise CommandError(
                    f"there is no topic {topic} and the broker does not create it; "
                    f"create it with 'headrace topics create {topic}'"
                )
    if partition is not None and partition >= len(found.partitions):
        last = len(found.partitions) - 1
        raise UsageError(f"--partition {partition}: topic {topic} has partitions 0 to {last}")


def _tell_summary(production: Production, sender: Sender, topic: str, *, is_json: bool) -> None:
    seconds = production.seconds
    if sender.failed:
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in sender.failures.items())
        tell(f"{sender.failed:,} messages were not acknowledged: {reasons}")
    if is_json:
        print_json(
            {
                "topic": topic,
                "messages": sender.acknowledged,
                "bytes": sender.sent_bytes,
                "seconds": round(seconds, 3),
                "failed": sender.failed,
                "refused": production.refused,
                "failures": dict(sender.failures),
            }
        )
        return
    rate = sender.acknowledged / max(seconds, 0.001)
    tell(
        f"{sender.acknowledged:,} messages, {sender.sent_bytes:,} bytes, {seconds:.1f} s "
        f"({rate:,.0f} messages/s), {sender.failed:,} failed"
        + (f", {production.refused:,} refused" if production.refused else "")
    )
